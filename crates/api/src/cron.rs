//! A cron schedule: its text in, the times at which it is due out, as Go's cron library reads both.

mod field;

use field::{Field, HOURS, MINUTES, MONTH_DAYS, MONTHS, WEEK_DAYS};
use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

/// The library gives up after so many years: `31 2` (the 31st of February) never comes.
const YEARS: i16 = 5;
const SECOND: SignedDuration = SignedDuration::from_secs(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// When something is due: at certain times of the clock and calendar, or in equal distances.
///
/// ```
/// use api::cron::Schedule;
/// use jiff::{Timestamp, tz::TimeZone};
///
/// let weekdays: Schedule = "30 6 * * mon-fri".parse().expect("it is a schedule");
/// let friday: Timestamp = "2026-01-02T12:00:00Z".parse().expect("it is a time");
/// let next = weekdays.next(friday, &TimeZone::UTC).expect("there is a next Monday");
/// assert_eq!(next.to_string(), "2026-01-05T06:30:00Z");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    Calendar(Calendar),
    /// Whole seconds, one at least.
    Every(SignedDuration),
}

/// The minutes, hours and days on which something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    minutes: Field,
    hours: Field,
    month_days: Field,
    months: Field,
    week_days: Field,
}

/// What is wrong with the text of a schedule, in the words of Go's cron library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSchedule(String);

impl std::fmt::Display for BadSchedule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for BadSchedule {}

impl std::str::FromStr for Schedule {
    type Err = BadSchedule;

    /// Five fields, or `@hourly` and the like. A time zone (`TZ=…`) in front is skipped: see [`zone`].
    fn from_str(text: &str) -> Result<Schedule, BadSchedule> {
        let text = match zone(text) {
            Some(_) => text.split_once(' ').map_or("", |(_, rest)| rest.trim()),
            None => text,
        };
        if text.starts_with('@') {
            return descriptor(text).map_err(BadSchedule);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, month_days, months, week_days] = fields[..] else {
            let found = fields.len();
            let problem = format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" "));
            return Err(BadSchedule(problem));
        };
        let calendar = || -> Result<Calendar, String> {
            Ok(Calendar {
                minutes: MINUTES.parse(minutes)?,
                hours: HOURS.parse(hours)?,
                month_days: MONTH_DAYS.parse(month_days)?,
                months: MONTHS.parse(months)?,
                week_days: WEEK_DAYS.parse(week_days)?,
            })
        };
        calendar().map(Schedule::Calendar).map_err(BadSchedule)
    }
}

/// The time zone in front of a schedule, as in `TZ=Asia/Tokyo 0 9 * * *`.
pub fn zone(schedule: &str) -> Option<&str> {
    let named = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ="))?;
    Some(named.split_once(' ').map_or(named, |(zone, _)| zone))
}

fn descriptor(text: &str) -> Result<Schedule, String> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(duration) = text.strip_prefix("@every ") else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let nanos = crate::time::parse_duration(duration)
                .map_err(|problem| format!("failed to parse duration {text}: {problem}"))?;
            let seconds = SignedDuration::from_nanos(nanos).as_secs().max(1);
            return Ok(Schedule::Every(SignedDuration::from_secs(seconds)));
        }
    };
    fields.parse().map_err(|BadSchedule(problem)| problem)
}

impl Schedule {
    /// The first time after `after`, by the clock of `zone`; `None` if there is none within five years.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Schedule::Calendar(calendar) => calendar.next(whole_seconds(after), zone),
            Schedule::Every(delay) => whole_seconds(after).checked_add(*delay).ok(),
        }
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_millisecond().div_euclid(1000)).unwrap_or(time)
}

/// A time that is moved forward until every field matches.
struct Candidate<'a> {
    time: Timestamp,
    zone: &'a TimeZone,
    /// Whether it was moved: then the smaller fields are at their beginning.
    is_moved: bool,
}

impl Calendar {
    /// Where the clock changes, this is the library's way: a time in the hour that is skipped is due in the
    /// hour after it or not at all, and one in the hour that comes twice may be due twice.
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut candidate = Candidate { time: after.checked_add(SECOND).ok()?, zone, is_moved: false };
        let last_year = candidate.date().year().saturating_add(YEARS);
        // Each turn reaches a later month, day or hour.
        while candidate.date().year() <= last_year {
            if candidate.find_month(self)?
                && candidate.find_day(self)?
                && candidate.find_hour(self)?
                && candidate.find_minute(self)?
                && candidate.find_second()?
            {
                return Some(candidate.time);
            }
        }
        None
    }

    /// If only one of the two day fields is restricted, it decides; if both are, either may match.
    fn has_day(&self, date: Date) -> bool {
        let in_month = self.month_days.contains(date.day());
        let in_week = self.week_days.contains(date.weekday().to_sunday_zero_offset());
        match self.month_days.is_any() || self.week_days.is_any() {
            true => in_month && in_week,
            false => in_month || in_week,
        }
    }
}

/// Each of these moves to the next time at which a field matches, and returns whether that was reached before
/// a larger field changed; `None` if there is no such time.
impl Candidate<'_> {
    fn find_month(&mut self, calendar: &Calendar) -> Option<bool> {
        while !calendar.months.contains(self.date().month()) {
            if !std::mem::replace(&mut self.is_moved, true) {
                self.time = self.at(self.date().first_of_month().at(0, 0, 0, 0))?;
            }
            // Where midnight is skipped, this may be the last day of the month before: days that the next month
            // does not have go over into the one after it, as in Go.
            let clock = self.clock();
            let next = clock.date().first_of_month().checked_add(jiff::Span::new().months(1)).ok()?;
            let next = next.checked_add(jiff::Span::new().days(clock.day() - 1)).ok()?;
            self.time = self.at(next.to_datetime(clock.time()))?;
            if self.date().month() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn find_day(&mut self, calendar: &Calendar) -> Option<bool> {
        while !calendar.has_day(self.date()) {
            if !std::mem::replace(&mut self.is_moved, true) {
                self.time = self.at(self.date().at(0, 0, 0, 0))?;
            }
            let clock = self.clock();
            self.time = self.at(clock.date().tomorrow().ok()?.to_datetime(clock.time()))?;
            // Some zones change their clocks at midnight: then it is one hour too early or too late.
            let hour = i64::from(self.hour());
            let until_midnight = if hour > 12 { 24 - hour } else { -hour };
            self.time = self.time.checked_add(SignedDuration::from_hours(until_midnight)).ok()?;
            if self.date().day() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn find_hour(&mut self, calendar: &Calendar) -> Option<bool> {
        while !calendar.hours.contains(self.hour()) {
            if !self.is_moved {
                self.is_moved = true;
                self.time = self.at(self.date().at(self.hour(), 0, 0, 0))?;
            }
            self.time = self.time.checked_add(HOUR).ok()?;
            if self.hour() == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn find_minute(&mut self, calendar: &Calendar) -> Option<bool> {
        while !calendar.minutes.contains(self.minute()) {
            if !self.is_moved {
                self.is_moved = true;
                let second = self.time.as_second().rem_euclid(60);
                self.time = self.time.checked_sub(SignedDuration::from_secs(second)).ok()?;
            }
            self.time = self.time.checked_add(MINUTE).ok()?;
            if self.minute() == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// A schedule is due at the full minute.
    fn find_second(&mut self) -> Option<bool> {
        let second = i64::from(self.clock().second());
        if second == 0 {
            return Some(true);
        }
        self.is_moved = true;
        self.time = self.time.checked_add(SignedDuration::from_secs(60 - second)).ok()?;
        Some(false)
    }

    fn clock(&self) -> DateTime {
        self.zone.to_datetime(self.time)
    }

    fn date(&self) -> Date {
        self.clock().date()
    }

    fn hour(&self) -> i8 {
        self.clock().hour()
    }

    fn minute(&self) -> i8 {
        self.clock().minute()
    }

    /// A time of the clock that is skipped or comes twice is read as Go reads it: with the offset that was in
    /// force at about that time.
    fn at(&self, clock: DateTime) -> Option<Timestamp> {
        let as_utc = TimeZone::UTC.to_timestamp(clock).ok()?;
        let minus = |offset: jiff::tz::Offset| {
            as_utc.checked_sub(SignedDuration::from_secs(offset.seconds().into())).ok()
        };
        let guess = minus(self.zone.to_offset(as_utc))?;
        minus(self.zone.to_offset(guess))
    }
}

#[cfg(test)]
mod tests;
