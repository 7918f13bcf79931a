//! How many devices a request for devices asks for.

use super::member::{self, Members};

const EXACT: &str = "ExactCount";

pub(super) fn request(request: &mut Members) {
    member::default_to(request, "allocationMode", EXACT);
    if member::text(request, "allocationMode") == EXACT && member::integer(request, "count") == 0 {
        request.insert("count".to_owned(), 1.into());
    }
}
