//! The containers of a pod in, the resources of the pod as a whole out, and its quality of service.

use std::collections::BTreeMap;

use api::quantity::Quantity;
use serde_json::Value;

use crate::defaults::member::{self, Members};

/// Amounts by the name of the resource.
type Resources = BTreeMap<String, Quantity>;

const HUGE_PAGES: &str = "hugepages-";
/// The resources that decide the quality of service.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// Where a pod says something about its resources as a whole, what follows from its containers is filled in.
pub(super) fn complete(spec: &mut Members) {
    let limits = of_containers(spec, "limits");
    let requests = of_containers(spec, "requests");
    let Some(resources) = member::present(spec, "resources") else { return };
    let says = |resources: &Members, what: &str| member::is_set(resources, what);
    if !says(resources, "limits") && !says(resources, "requests") {
        return;
    }
    let is_requested = |resources: &Members, name: &str| {
        member::object(resources, "requests").is_some_and(|requests| requests.contains_key(name))
    };
    for (name, amount) in limits.iter().filter(|(name, _)| name.starts_with(HUGE_PAGES)) {
        if !is_requested(resources, name) {
            add_missing(resources, "limits", name, amount.to_string().into());
        }
    }
    if !says(resources, "limits") {
        return;
    }
    for (name, amount) in requests.iter().filter(|(name, _)| COMPUTE.contains(&&***name)) {
        add_missing(resources, "requests", name, amount.to_string().into());
    }
    for (name, amount) in member::object(resources, "limits").cloned().unwrap_or_default() {
        if COMPUTE.contains(&&*name) || name.starts_with(HUGE_PAGES) {
            add_missing(resources, "requests", &name, amount);
        }
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`, by what is requested and where it is limited.
pub(super) fn quality_of_service(spec: &Members) -> &'static str {
    let whole = member::object(spec, "resources");
    let all: Vec<Option<&Members>> = match whole {
        Some(resources) => vec![Some(resources)],
        None => ["containers", "initContainers"]
            .iter()
            .flat_map(|list| member::items(spec, list))
            .map(|container| member::object(container, "resources"))
            .collect(),
    };
    let mut requests = Resources::new();
    let mut limits = Resources::new();
    let mut guaranteed = true;
    for resources in all {
        add(&mut requests, compute(resources, "requests"));
        let limited = compute(resources, "limits");
        let counts = whole.is_none_or(|whole| member::is_set(whole, "limits"));
        guaranteed &= !counts || limited.len() == COMPUTE.len();
        add(&mut limits, limited);
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// What is said of compute resources, unless it is zero.
fn compute(resources: Option<&Members>, what: &str) -> Resources {
    let mut found = resources.map(|resources| read(resources, what)).unwrap_or_default();
    found.retain(|name, amount| COMPUTE.contains(&&**name) && amount.cmp_i64(0).is_gt());
    found
}

/// What all containers together need: those that run at once, or the hungriest moment before them.
pub(super) fn of_containers(spec: &Members, what: &str) -> Resources {
    let own = |container| member::object(container, "resources").map(|it| read(it, what)).unwrap_or_default();
    let mut running = Resources::new();
    for container in member::items(spec, "containers") {
        add(&mut running, own(container));
    }
    let mut sidecars = Resources::new();
    let mut starting = Resources::new();
    for container in member::items(spec, "initContainers") {
        let mut needed = own(container);
        if member::text(container, "restartPolicy") == "Always" {
            add(&mut running, needed.clone());
            add(&mut sidecars, needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, sidecars.clone());
        }
        raise(&mut starting, needed);
    }
    raise(&mut running, starting);
    running
}

fn read(resources: &Members, what: &str) -> Resources {
    let amounts = member::object(resources, what).into_iter().flatten();
    amounts.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

fn add(sum: &mut Resources, more: Resources) {
    for (name, amount) in more {
        match sum.get_mut(&name) {
            Some(sum) => *sum += &amount,
            None => drop(sum.insert(name, amount)),
        }
    }
}

fn raise(highest: &mut Resources, other: Resources) {
    for (name, amount) in other {
        match highest.get(&name) {
            Some(highest) if *highest >= amount => {}
            _ => drop(highest.insert(name, amount)),
        }
    }
}

fn add_missing(resources: &mut Members, what: &str, name: &str, amount: Value) {
    member::made(resources, what).entry(name).or_insert(amount);
}
