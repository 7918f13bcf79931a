//! Scale: the number of replicas of something, which only subresources speak.

use api::field::ErrorList;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::validate::at::At;
use crate::validate::validation::Validation;

pub(crate) static SCALE: BuiltIn = BuiltIn::new(GROUP, "Scale", "").validation(Validation::new(check));

fn check(scale: &At<'_, '_>, errors: &mut ErrorList) {
    scale.field("spec").field("replicas").not_negative(errors);
}
