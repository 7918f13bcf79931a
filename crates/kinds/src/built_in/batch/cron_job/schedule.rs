//! A cron schedule in, what is wrong with it out, in the words of Go's cron library.

use std::fmt::Write as _;

/// The values that a field can take, and names for some.
struct Bounds {
    min: i64,
    max: i64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds { min: 1, max: 12, names: &MONTHS },
    Bounds { min: 0, max: 6, names: &DAYS },
];

/// Nothing if it can be understood.
pub(super) fn problem(schedule: &str) -> Option<String> {
    let mut spec = schedule;
    if spec.starts_with("TZ=") || spec.starts_with("CRON_TZ=") {
        spec = spec.split_once(' ').map_or("", |(_, rest)| rest.trim());
    }
    if let Some(descriptor) = spec.strip_prefix('@') {
        return descriptor_problem(spec, descriptor);
    }
    let fields: Vec<_> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (wanted, found) = (FIELDS.len(), fields.len());
        return Some(format!("expected exactly {wanted} fields, found {found}: [{}]", fields.join(" ")));
    }
    let parts = fields.iter().zip(&FIELDS).flat_map(|(field, bounds)| {
        field.split(',').filter(|part| !part.is_empty()).map(move |part| (part, bounds))
    });
    parts.map(|(part, bounds)| bounds.check(part)).find_map(Result::err)
}

fn descriptor_problem(spec: &str, descriptor: &str) -> Option<String> {
    match descriptor {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => None,
        _ => match descriptor.strip_prefix("every ") {
            Some(duration) => {
                let problem = api::time::parse_duration(duration).err()?;
                Some(format!("failed to parse duration {spec}: {problem}"))
            }
            None => Some(format!("unrecognized descriptor: {spec}")),
        },
    }
}

impl Bounds {
    /// `low-high/step`, where `*` is everything.
    fn check(&self, part: &str) -> Result<(), String> {
        let steps: Vec<_> = part.split('/').collect();
        let ends: Vec<_> = steps[0].split('-').collect();
        let (start, mut end) = match ends.as_slice() {
            ["*" | "?", ..] => (self.min, self.max),
            [only] => (self.number(only)?, self.number(only)?),
            [low, high] => (self.number(low)?, self.number(high)?),
            [low, ..] => {
                self.number(low)?;
                return Err(format!("too many hyphens: {part}"));
            }
            [] => return Ok(()),
        };
        let step = match steps.as_slice() {
            [_] => 1,
            [_, step] => {
                if ends.len() == 1 {
                    end = self.max;
                }
                whole_number(step)?
            }
            _ => return Err(format!("too many slashes: {part}")),
        };
        let mut problem = String::new();
        if start < self.min {
            let _ = write!(problem, "beginning of range ({start}) below minimum ({})", self.min);
        } else if end > self.max {
            let _ = write!(problem, "end of range ({end}) above maximum ({})", self.max);
        } else if start > end {
            let _ = write!(problem, "beginning of range ({start}) beyond end of range ({end})");
        } else if step == 0 {
            problem.push_str("step of range should be a positive number");
        } else {
            return Ok(());
        }
        Err(format!("{problem}: {part}"))
    }

    fn number(&self, text: &str) -> Result<i64, String> {
        let lower = text.to_lowercase();
        match self.names.iter().position(|name| *name == lower) {
            Some(position) => Ok(self.min + position as i64),
            None => whole_number(text),
        }
    }
}

fn whole_number(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number),
        Err(_) => {
            let quoted = api::go::quote(text);
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_refused_in_the_words_of_the_cron_library() {
        for (schedule, expected) in [
            ("*/5 0-23/2 1,15 jan-dec SUN", ""),
            ("@hourly", ""),
            ("@every 1h30m", ""),
            ("often", "expected exactly 5 fields, found 1: [often]"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("@never", "unrecognized descriptor: @never"),
            ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
        ] {
            assert_eq!(problem(schedule).unwrap_or_default(), expected, "{schedule}");
        }
    }
}
