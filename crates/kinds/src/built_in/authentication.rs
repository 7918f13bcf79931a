//! The kinds of `authentication.k8s.io`: requests that are answered and never stored.

use api::field::ErrorList;

use crate::built_in::BuiltIn;
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::validate::at::At;
use crate::validate::validation::{Metadata, Validation};

const GROUP: &str = "authentication.k8s.io";

pub(crate) static TOKEN_REVIEW: BuiltIn = BuiltIn::new(GROUP, "TokenReview", "tokenreviews")
    .older_versions(&["v1beta1"])
    .validation(Validation::METADATA.metadata(Metadata::Unchecked));

pub(crate) static SELF_SUBJECT_REVIEW: BuiltIn =
    BuiltIn::new(GROUP, "SelfSubjectReview", "selfsubjectreviews")
        .older_versions(&["v1alpha1", "v1beta1"])
        .validation(Validation::METADATA.metadata(Metadata::Unchecked));

/// A token for a service account, which is asked for through a subresource.
pub(crate) static TOKEN_REQUEST: BuiltIn = BuiltIn::new(GROUP, "TokenRequest", "")
    .validation(Validation::new(check_token_request).metadata(Metadata::Unchecked))
    .defaults(&[TypeDefaults::of("authentication.v1.TokenRequestSpec")
        .values(&[("expirationSeconds", DefaultValue::Number(3600))])]);

fn check_token_request(request: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = request.field("spec");
    let expiration = spec.field("expirationSeconds");
    if expiration.int() < 10 * 60 {
        expiration.invalid_int(errors, "may not specify a duration less than 10 minutes");
    }
    if expiration.int() > 1 << 32 {
        expiration.invalid_int(errors, "may not specify a duration larger than 2^32 seconds");
    }
}
