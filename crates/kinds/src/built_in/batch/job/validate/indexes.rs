//! Intervals of indexes, `1,3-5`, as a job counts them.

/// How many there are, or what is wrong.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (low, high) = parse(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= low) {
            return Err(format!("non-increasing order, previous: {last}, current: {low}"));
        }
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

/// The first index that is in both lists. Intervals that cannot be read are passed over: their form is told elsewhere.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|interval| parse(interval, completions).ok()).collect()
    };
    let (ones, others) = (intervals(one), intervals(other));
    let (mut at_one, mut at_other) = (0, 0);
    while let (Some(one), Some(other)) = (ones.get(at_one), others.get(at_other)) {
        if one.0 <= other.1 && other.0 <= one.1 {
            return Some(one.0.max(other.0));
        }
        if one.0 <= other.0 { at_one += 1 } else { at_other += 1 }
    }
    None
}

fn parse(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let number = |text: &str| {
        let quoted = api::go::quote(text);
        let number = text.parse::<i64>();
        let number = number.map_err(|_| format!("cannot convert string to integer for index: {quoted}"))?;
        if number >= completions { Err(format!("too large index: {quoted}")) } else { Ok(number) }
    };
    match interval.split('-').collect::<Vec<_>>().as_slice() {
        [only] => number(only).map(|only| (only, only)),
        [low, high] => match (number(low)?, number(high)?) {
            (low, high) if low >= high => {
                Err(format!("non-increasing order, previous: {low}, current: {high}"))
            }
            pair => Ok(pair),
        },
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts \
             separated by '-'",
            api::go::quote(interval)
        )),
    }
}
