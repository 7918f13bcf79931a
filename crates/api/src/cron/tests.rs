//! Schedules and the times at which they are due.

use super::*;

#[test]
fn schedules_are_refused_in_the_words_of_the_cron_library() {
    for (schedule, expected) in [
        ("*/5 0-23/2 1,15 jan-dec SUN", ""),
        ("@hourly", ""),
        ("@every 1h30m", ""),
        ("TZ=Asia/Tokyo @daily", ""),
        ("often", "expected exactly 5 fields, found 1: [often]"),
        ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
    ] {
        let problem = schedule.parse::<Schedule>().err();
        assert_eq!(problem.map(|it| it.to_string()).unwrap_or_default(), expected, "{schedule}");
    }
}

/// The next three times after `after`, in UTC.
fn next(schedule: &str, after: &str, zone: &TimeZone) -> Vec<String> {
    let schedule: Schedule = schedule.parse().unwrap();
    let mut time: Option<Timestamp> = Some(after.parse().unwrap());
    let mut times = Vec::new();
    for _ in 0..3 {
        time = time.and_then(|time| schedule.next(time, zone));
        times.extend(time.map(|time| time.to_string()));
    }
    times
}

/// Recorded from the library: schedule, after which time, the next three times.
const DUE: &str = "
    * * * * * | 2026-01-01T00:00:00.5Z | 2026-01-01T00:01:00Z 2026-01-01T00:02:00Z 2026-01-01T00:03:00Z
    */20 * * * * | 2026-01-01T00:40:00Z | 2026-01-01T01:00:00Z 2026-01-01T01:20:00Z 2026-01-01T01:40:00Z
    5/25 * * * * | 2026-01-01T00:40:00Z | 2026-01-01T00:55:00Z 2026-01-01T01:05:00Z 2026-01-01T01:30:00Z
    0 6-16/4 * * 1-5 | 2026-01-02T14:00:00Z | 2026-01-05T06:00:00Z 2026-01-05T10:00:00Z 2026-01-05T14:00:00Z
    @hourly | 2026-12-31T22:30:00Z | 2026-12-31T23:00:00Z 2027-01-01T00:00:00Z 2027-01-01T01:00:00Z
    @weekly | 2026-01-01T00:00:00Z | 2026-01-04T00:00:00Z 2026-01-11T00:00:00Z 2026-01-18T00:00:00Z
    @monthly | 2026-01-01T00:00:00Z | 2026-02-01T00:00:00Z 2026-03-01T00:00:00Z 2026-04-01T00:00:00Z
    @yearly | 2026-01-01T00:00:00Z | 2027-01-01T00:00:00Z 2028-01-01T00:00:00Z 2029-01-01T00:00:00Z
    0 0 29 2 ? | 2026-01-01T00:00:00Z | 2028-02-29T00:00:00Z 2032-02-29T00:00:00Z 2036-02-29T00:00:00Z
    0 0 13 * fri | 2026-01-01T00:00:00Z | 2026-01-02T00:00:00Z 2026-01-09T00:00:00Z 2026-01-13T00:00:00Z
    0 0 */15 * fri | 2026-01-09T00:00:00Z | 2026-01-16T00:00:00Z 2026-01-23T00:00:00Z 2026-01-30T00:00:00Z
    @every 90m | 2026-01-01T00:00:10.7Z | 2026-01-01T01:30:10Z 2026-01-01T03:00:10Z 2026-01-01T04:30:10Z
    @every 10ms | 2026-01-01T00:00:10Z | 2026-01-01T00:00:11Z 2026-01-01T00:00:12Z 2026-01-01T00:00:13Z
";

#[test]
fn schedules_are_due_at_the_times_of_the_cron_library() {
    for line in DUE.trim().lines() {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [schedule, after, expected] = columns[..] else { panic!("three columns: {line}") };
        assert_eq!(next(schedule, after, &TimeZone::UTC).join(" "), expected, "{line}");
    }
    assert!(next("0 0 31 2 *", "2026-01-01T00:00:00Z", &TimeZone::UTC).is_empty());
}

#[test]
fn days_on_which_the_clock_changes_are_those_of_the_cron_library() {
    // Berlin: an hour forward on 2026-03-29 at 2:00, back on 2026-10-25 at 3:00.
    let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    // Santiago, as in 2026: forward at midnight of 2026-09-06.
    let santiago = TimeZone::posix("<-04>4<-03>,M9.1.6/24,M4.1.6/24").unwrap();
    for (zone, schedule, after, expected) in [
        // The hour from 2:00 is skipped, and with it the start of that day.
        (
            &berlin,
            "30 2 * * *",
            "2026-03-28T00:00:00Z",
            ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"],
        ),
        (
            &berlin,
            "0 3 * * *",
            "2026-03-28T03:00:00Z",
            ["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z", "2026-03-31T01:00:00Z"],
        ),
        // The hour from 2:00 comes twice, and so does the start.
        (
            &berlin,
            "30 2 * * *",
            "2026-10-24T03:00:00Z",
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"],
        ),
        (
            &berlin,
            "0 * * * *",
            "2026-10-24T23:00:00Z",
            ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
        ),
        // Midnight is skipped.
        (
            &santiago,
            "0 4 * * 1",
            "2026-09-01T00:00:00Z",
            ["2026-09-07T07:00:00Z", "2026-09-14T07:00:00Z", "2026-09-21T07:00:00Z"],
        ),
    ] {
        assert_eq!(next(schedule, after, zone), expected, "{schedule} after {after}");
    }
}
