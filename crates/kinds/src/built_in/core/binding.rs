//! Binding: a request to bind a pod to a node.

use api::field::{Error, ErrorList};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::validate::at::At;
use crate::validate::validation::{Metadata, Validation};

pub(crate) static BINDING: BuiltIn = BuiltIn::new(GROUP, "Binding", "bindings")
    .validation(Validation::new(check).metadata(Metadata::Unchecked));

fn check(binding: &At<'_, '_>, errors: &mut ErrorList) {
    let target = binding.field("target");
    let kind = target.text_of("kind");
    if !matches!(kind, "" | "Node") {
        errors.push(Error::not_supported(target.field("kind").path(), kind, ["Node", "<empty>"]));
    }
    if target.text_of("name").is_empty() {
        target.field("name").required(errors, "");
    }
}
