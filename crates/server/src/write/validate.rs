//! Validation: the last stage before the commit, and the only place that makes a [`Checked`].

use super::{CreateRight, OwnPart, device_rights, privileged};
use crate::{
    admission::{self, Review},
    authorize::{self, Attributes, OnResource},
    call::Call,
    refusal::Refusal,
    request::Verb,
};
use api::{field::ErrorList, object};
use serde_json::Value;

/// An object that passed all checks, in the version of the request. Only such objects are stored.
#[derive(Debug)]
pub(crate) struct Checked(Value);

impl Checked {
    pub(crate) fn object(&self) -> &Value {
        &self.0
    }

    pub(crate) fn into_object(self) -> Value {
        self.0
    }

    /// An object of which the server has changed one part. All other fields keep their values from before.
    pub(crate) fn by_server(part: OwnPart, before: &Value, mut after: Value) -> Checked {
        part.restrict(before, &mut after);
        Checked(after)
    }
}

pub(super) async fn new_object(call: &Call, draft: Value, right: CreateRight) -> Result<Checked, Refusal> {
    let mut errors = device_rights::new_object(call, &draft).await?;
    errors.extend(call.served.check_new(&draft));
    errors.extend(privileged::new_object(call, &draft));
    refuse(call, &draft, errors)?;
    warn(call, &draft, None);
    // Kubernetes: create is authorized by the first of the validating plugins.
    if right == CreateRight::NotYetChecked {
        let create = OnResource::of(Verb::Create, &call.target, &call.options);
        authorize::demand(&call.inner, call.caller(), &Attributes::Resource(create)).await?;
    }
    let mut review = Review::create(call, draft);
    admission::validate(&review).await?;
    call.served.strategy().settle_create(&mut review.object);
    Ok(Checked(review.object))
}

pub(super) async fn next_object(call: &Call, draft: Value, current: &Value) -> Result<Checked, Refusal> {
    let mut forgiven = ErrorList::new();
    let mut errors = device_rights::next_object(call, &draft, current).await?;
    errors.extend(call.served.check_next(&call.target.subresource, &draft, current, &mut forgiven));
    errors.extend(privileged::next_object(call, &draft, current));
    forgiven.iter().for_each(|error| call.warn(error.to_string()));
    refuse(call, &draft, errors)?;
    warn(call, &draft, Some(current));
    let review = Review::update(call, draft, current);
    admission::validate(&review).await?;
    Ok(Checked(review.object))
}

/// Sends the kind's warnings to the client, also for writes that are then rejected.
pub(super) fn warn(call: &Call, draft: &Value, current: Option<&Value>) {
    if call.target.subresource.is_empty() {
        call.served.warnings(draft, current).into_iter().for_each(|warning| call.warn(warning));
    }
}

fn refuse(call: &Call, draft: &Value, errors: ErrorList) -> Result<(), Refusal> {
    let name = object::name(draft);
    errors.into_result().map_err(|errors| Refusal::invalid(&call.served.kept_kind(), name, &errors))
}
