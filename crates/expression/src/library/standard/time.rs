//! Parts of timestamps and durations.

use crate::{
    error::Error,
    library::{Body, Function, Outcome, Overload},
    time::local,
    ty::Type,
    value::Value,
};
use jiff::civil::DateTime;

pub(super) fn functions() -> Vec<Function> {
    let both = |name, ids: [&'static str; 2], body: Body| {
        let plain = Overload::member(ids[0], vec![Type::Timestamp], Type::Int, body);
        let zoned = Overload::member(ids[1], vec![Type::Timestamp, Type::String], Type::Int, body);
        Function::new(name, vec![plain, zoned])
    };
    let of_duration = |name, id, body: Body| {
        Function::new(name, vec![Overload::member(id, vec![Type::Duration], Type::Int, body)])
    };
    vec![
        both("getFullYear", ["timestamp_to_year", "timestamp_to_year_with_tz"], |args| {
            part(args, |at| i64::from(at.year()))
        }),
        both("getMonth", ["timestamp_to_month", "timestamp_to_month_with_tz"], |args| {
            part(args, |at| i64::from(at.month()) - 1)
        }),
        both("getDayOfYear", ["timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz"], |args| {
            part(args, |at| i64::from(at.day_of_year()) - 1)
        }),
        both("getDayOfMonth", ["timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz"], |args| {
            part(args, |at| i64::from(at.day()) - 1)
        }),
        both(
            "getDate",
            ["timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz"],
            |args| part(args, |at| i64::from(at.day())),
        ),
        both("getDayOfWeek", ["timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz"], |args| {
            part(args, |at| i64::from(at.weekday().to_sunday_zero_offset()))
        }),
        both("getHours", ["timestamp_to_hours", "timestamp_to_hours_with_tz"], |args| {
            part(args, |at| i64::from(at.hour()))
        }),
        both("getMinutes", ["timestamp_to_minutes", "timestamp_to_minutes_with_tz"], |args| {
            part(args, |at| i64::from(at.minute()))
        }),
        both("getSeconds", ["timestamp_to_seconds", "timestamp_to_seconds_with_tz"], |args| {
            part(args, |at| i64::from(at.second()))
        }),
        both("getMilliseconds", ["timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz"], |args| {
            part(args, |at| i64::from(at.subsec_nanosecond()) / 1_000_000)
        }),
        of_duration("getHours", "duration_to_hours", |args| units(args, 3_600_000_000_000)),
        of_duration("getMinutes", "duration_to_minutes", |args| units(args, 60_000_000_000)),
        of_duration("getSeconds", "duration_to_seconds", |args| units(args, 1_000_000_000)),
        of_duration("getMilliseconds", "duration_to_milliseconds", |args| units(args, 1_000_000)),
    ]
}

fn part<'a>(args: &[Value<'a>], part: fn(DateTime) -> i64) -> Outcome<'a> {
    match args {
        [Value::Timestamp(at)] => local(*at, None).map(|at| Value::Int(part(at))),
        [Value::Timestamp(at), Value::String(zone)] => local(*at, Some(zone)).map(|at| Value::Int(part(at))),
        _ => Err(Error::no_such_overload()),
    }
}

fn units<'a>(args: &[Value<'a>], unit: i64) -> Outcome<'a> {
    match args {
        [Value::Duration(nanos)] => Ok(Value::Int(nanos / unit)),
        _ => Err(Error::no_such_overload()),
    }
}
