//! Events of the core group and of `events.k8s.io`: the same, under other names.

use crate::defaults::member::Members;

/// The name in the core group, and the other.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(super) fn from_core(event: &mut Members) {
    NAMES.iter().for_each(|(core, other)| rename(event, core, other));
}

pub(super) fn to_core(event: &mut Members) {
    NAMES.iter().for_each(|(core, other)| rename(event, other, core));
}

fn rename(event: &mut Members, from: &str, to: &str) {
    if let Some(value) = event.remove(from) {
        event.insert(to.to_owned(), value);
    }
}
