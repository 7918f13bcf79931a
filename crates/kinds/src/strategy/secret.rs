//! A secret keeps its type where an update does not say one.

use super::Circumstances;
use crate::defaults::member::{self, Members};

pub(super) fn update(secret: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let before = member::text(old, "type").to_owned();
    if !before.is_empty() {
        member::default_to(secret, "type", before);
    }
}
