//! One field of a cron schedule: numbers, names, ranges and steps in, a set of numbers out.

/// The values that a field can take, and names for some.
pub(super) struct Bounds {
    min: i64,
    max: i64,
    names: &'static [&'static str],
}

pub(super) const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
pub(super) const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
pub(super) const MONTH_DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
pub(super) const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub(super) const WEEK_DAYS: Bounds =
    Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The numbers on which a field matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// One bit for each number: all are below 60.
    numbers: u64,
    /// Whether it has a star without a step: then it does not restrict the day.
    is_any: bool,
}

impl Field {
    pub(super) fn contains(self, number: i8) -> bool {
        self.numbers & (1 << number) != 0
    }

    pub(super) fn is_any(self) -> bool {
        self.is_any
    }
}

impl Bounds {
    /// Parts between commas; empty ones are skipped.
    pub(super) fn parse(&self, field: &str) -> Result<Field, String> {
        let mut all = Field::default();
        for part in field.split(',').filter(|part| !part.is_empty()) {
            let Field { numbers, is_any } = self.parse_part(part)?;
            all = Field { numbers: all.numbers | numbers, is_any: all.is_any || is_any };
        }
        Ok(all)
    }

    /// `low-high/step`, where `*` is everything.
    fn parse_part(&self, part: &str) -> Result<Field, String> {
        let steps: Vec<&str> = part.split('/').collect();
        let ends: Vec<&str> = steps[0].split('-').collect();
        let (start, mut end, has_star) = match ends[..] {
            ["*" | "?", ..] => (self.min, self.max, true),
            [only] => (self.number(only)?, self.number(only)?, false),
            [low, high] => (self.number(low)?, self.number(high)?, false),
            _ => {
                self.number(ends[0])?;
                return Err(format!("too many hyphens: {part}"));
            }
        };
        let step = match steps[..] {
            [_] => 1,
            [_, step] => {
                let step = whole_number(step)?;
                if ends.len() == 1 {
                    end = self.max;
                }
                step
            }
            _ => return Err(format!("too many slashes: {part}")),
        };
        self.check(start, end, step).map_err(|problem| format!("{problem}: {part}"))?;
        let step_by = usize::try_from(step).unwrap_or(usize::MAX);
        let numbers = (start..=end).step_by(step_by).fold(0, |numbers, number| numbers | 1 << number);
        Ok(Field { numbers, is_any: has_star && step == 1 })
    }

    fn check(&self, start: i64, end: i64, step: i64) -> Result<(), String> {
        if start < self.min {
            return Err(format!("beginning of range ({start}) below minimum ({})", self.min));
        }
        if end > self.max {
            return Err(format!("end of range ({end}) above maximum ({})", self.max));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end})"));
        }
        if step == 0 {
            return Err("step of range should be a positive number".to_owned());
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<i64, String> {
        let lower = text.to_lowercase();
        match self.names.iter().zip(self.min..).find(|(name, _)| **name == lower) {
            Some((_, number)) => Ok(number),
            None => whole_number(text),
        }
    }
}

fn whole_number(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number),
        Err(_) => {
            let quoted = crate::go::quote(text);
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"))
        }
    }
}
