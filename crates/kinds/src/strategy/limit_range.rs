//! A limit range without a name is called by its uid.

use super::Circumstances;
use crate::defaults::member::{self, Members};

pub(super) fn create(range: &mut Members, _: &Circumstances<'_>) {
    let metadata = member::made(range, "metadata");
    let uid = member::text(metadata, "uid").to_owned();
    if !uid.is_empty() {
        member::default_to(metadata, "name", uid);
    }
}
