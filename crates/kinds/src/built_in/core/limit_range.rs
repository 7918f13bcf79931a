//! LimitRange: what pods and claims of a namespace may ask for.

use api::field::{BadValue, Error, ErrorList, Path};
use api::name::Format;
use api::quantity::Quantity;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::TypeDefaults;
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::At;
use crate::validate::resource_names;
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static LIMIT_RANGE: BuiltIn = BuiltIn::new(GROUP, "LimitRange", "limitranges")
    .strategy(Strategy::PLAIN.allow_create_on_update().on_create(prepare_create))
    .validation(Validation::new(check).update(UpdateChecks::ONLY_AS_NEW))
    .defaults(&[TypeDefaults::of("core.v1.LimitRangeItem").rule(default_limits)]);

/// A limit range without a name is called by its uid.
fn prepare_create(range: &mut Members, _: &Circumstances<'_>) {
    let metadata = member::made(range, "metadata");
    let uid = member::text(metadata, "uid").to_owned();
    if !uid.is_empty() {
        member::default_to(metadata, "name", uid);
    }
}

fn check(range: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = range.field("spec");
    let limits = spec.field("limits");
    let mut taken = Taken::default();
    for limit in limits.items() {
        let sort = limit.field("type");
        sort.is_format(errors, Format::QualifiedName);
        let is_known = matches!(sort.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if Format::QualifiedName.fits(sort.text()) && !sort.text().contains('/') && !is_known {
            sort.invalid_text(errors, "must be a standard limit type or fully qualified");
        }
        if !taken.add(sort.text()) {
            sort.duplicate(errors);
        }
        check_names(&limit, sort.text(), errors);
        check_amounts(&limit, errors);
    }
}

fn check_names(limit: &At<'_, '_>, sort: &str, errors: &mut ErrorList) {
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let list = limit.field(field);
        if sort == "Pod" && field.starts_with("default") {
            if !list.is_empty() {
                list.forbidden(errors, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for (name, amount) in list.entries() {
            let check: fn(&Path<'_>, &str) -> ErrorList = if matches!(sort, "Pod" | "Container") {
                resource_names::check_for_container
            } else {
                resource_names::check
            };
            errors.extend(check(amount.path(), name));
        }
    }
    let has_storage = |field: &str| limit.field(field).has("storage");
    if sort == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let problem = "either minimum or maximum storage value is required, but neither was provided";
        limit.field("limits").required(errors, problem);
    }
}

fn check_amounts(limit: &At<'_, '_>, errors: &mut ErrorList) {
    let lists = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"].map(|it| limit.field(it));
    let mut names: Vec<_> = lists.iter().flat_map(|list| list.entries().map(|(name, _)| name)).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let [min, max, default, request, ratio] = lists.map(|list| list.field(name).quantity());
        let mut complain = |field: &str, shown: &Quantity, problem: String| {
            let list = limit.field(field);
            errors.push(Error::invalid(&list.path().key(name), BadValue::from(shown.to_string()), problem));
        };
        // The field, both sides of `<=`, which of them is shown, and the words in between.
        for (field, low, high, shows_low, low_name, high_name) in [
            ("min", &min, &max, true, "min value", "max value"),
            ("defaultRequest", &min, &request, false, "min value", "default request value"),
            ("defaultRequest", &request, &max, true, "default request value", "max value"),
            ("defaultRequest", &request, &default, true, "default request value", "default limit value"),
            ("default", &min, &default, true, "min value", "default value"),
            ("default", &default, &max, false, "default value", "max value"),
        ] {
            if let (Some(low), Some(high)) = (low, high)
                && low > high
            {
                let shown = if shows_low { low } else { high };
                complain(field, shown, format!("{low_name} {low} is greater than {high_name} {high}"));
            }
        }
        if let Some(ratio) = &ratio {
            if ratio.cmp_i64(1).is_lt() {
                complain("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let (Some(min), Some(max)) = (&min, &max) {
                let most = max.approximate() / min.approximate();
                if ratio.approximate() > most {
                    let problem = format!("ratio {ratio} is greater than max/min = {most:.6}");
                    complain("maxLimitRequestRatio", ratio, problem);
                }
            }
        }
        if let (Some(default), Some(request)) = (&default, &request)
            && !resource_names::may_overcommit(name)
            && default != request
        {
            let problem =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            complain("defaultRequest", request, problem);
        }
    }
}

/// The limit is the maximum, the request is the limit or else the minimum.
fn default_limits(item: &mut Members) {
    if member::text(item, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        member::add_missing(item, to, from);
    }
}
