//! How much of a device can be had, and in which portions.

use api::field::{BadValue, Error, ErrorList};
use api::quantity::Quantity;

use crate::validate::at::At;
use crate::validate::taken::Taken;

const MAX_PORTIONS: usize = 10;

pub(super) fn check(capacity: &At<'_, '_>, is_shared: bool, errors: &mut ErrorList) {
    let policy = capacity.field("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !is_shared {
        policy.forbidden(errors, "allowMultipleAllocations must be true");
        return;
    }
    let (values, range) = (policy.field("validValues"), policy.field("validRange"));
    let all = capacity.field("value").quantity().unwrap_or_default();
    let default = policy.field("default");
    if !values.is_empty() && range.is_set() {
        let problem = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the \
            same time";
        policy.forbidden(errors, problem);
    } else if !values.is_empty() {
        match default.quantity() {
            Some(default) => portions(&values, &default, &all, errors),
            None => default.required(errors, "required when validValues is defined"),
        }
    } else if range.is_set() {
        match default.quantity() {
            Some(default) => within(&range, &default, &all, errors),
            None => default.required(errors, "required when validRange is defined"),
        }
    }
}

fn shown(quantity: &Quantity) -> BadValue {
    BadValue::from(quantity.to_string())
}

/// A list of amounts, in ascending order, the default among them.
fn portions(values: &At<'_, '_>, default: &Quantity, all: &Quantity, errors: &mut ErrorList) {
    let amounts: Vec<Quantity> = values.items().filter_map(|it| it.quantity()).collect();
    for (at, pair) in amounts.windows(2).enumerate().filter(|(_, pair)| pair[0] > pair[1]) {
        let problem = "values must be sorted in ascending order";
        values.index(at + 1).invalid_as(errors, shown(&pair[1]), problem);
    }
    let mut has_default = false;
    if amounts.len() > MAX_PORTIONS {
        errors.push(Error::too_many(values.path(), amounts.len(), MAX_PORTIONS));
    } else {
        for (at, amount) in amounts.iter().enumerate() {
            if amount > all {
                let problem = format!("option is larger than capacity value: {all}");
                values.index(at).invalid_as(errors, shown(amount), problem);
            }
            has_default |= amount == default;
        }
        let mut taken = Taken::default();
        for (at, amount) in amounts.iter().enumerate() {
            let value = amount.value().unwrap_or(i64::MAX);
            if !taken.add(value) {
                errors.push(Error::duplicate(values.index(at).path(), value.to_string()));
            }
        }
    }
    if !has_default {
        values.invalid_as(
            errors,
            shown(default),
            "default value is not valid according to the requestPolicy",
        );
    }
}

/// From a least amount to a largest, in steps.
fn within(range: &At<'_, '_>, default: &Quantity, all: &Quantity, errors: &mut ErrorList) {
    let (min_at, max_at, step_at) = (range.field("min"), range.field("max"), range.field("step"));
    let Some(min) = min_at.quantity() else {
        min_at.required(errors, "required when validRange is defined");
        return;
    };
    if &min > all {
        min_at.invalid_as(errors, shown(&min), format!("min is larger than capacity value: {all}"));
    }
    if default < &min {
        min_at.invalid_as(errors, shown(default), format!("default is less than min: {min}"));
    }
    let max = max_at.quantity();
    if let Some(max) = &max {
        if &min > max {
            max_at.invalid_as(errors, shown(&min), format!("min is larger than max: {max}"));
        }
        if max > all {
            max_at.invalid_as(errors, shown(max), format!("max is larger than capacity value: {all}"));
        }
        if default > max {
            max_at.invalid_as(errors, shown(default), format!("default is more than max: {max}"));
        }
    }
    let Some(step) = step_at.quantity() else { return };
    let mut first = min.clone();
    first += &step;
    if &first > all {
        let problem = format!("one step {first} is larger than capacity value: {all}");
        step_at.invalid_as(errors, shown(&step), problem);
    }
    for value in [Some(default), max.as_ref()].into_iter().flatten() {
        let whole = |quantity: &Quantity| quantity.value().unwrap_or(i64::MAX);
        let above = whole(value).wrapping_sub(whole(&min));
        // A step of zero fits nothing, and must not divide.
        if above.checked_rem(whole(&step)) != Some(0) {
            let problem = format!("value is not a multiple of a given step ({step}) from ({min})");
            step_at.invalid_as(errors, shown(value), problem);
        }
    }
}
