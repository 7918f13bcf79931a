//! The last look before the store: the only place where a [`Checked`] is made.

use crate::verbs::Call;
use api::{object, status::Status};
use serde_json::Value;

/// An object that passed every check, in the version of the request. Nothing else is ever stored.
#[derive(Debug)]
pub(crate) struct Checked(Value);

impl Checked {
    pub(crate) fn object(&self) -> &Value {
        &self.0
    }

    pub(crate) fn into_object(self) -> Value {
        self.0
    }

    /// An object whose only change is the server's own: marks of deletion, allocations.
    pub(crate) fn by_server(object: Value) -> Checked {
        Checked(object)
    }
}

pub(super) fn new_object(call: &Call<'_>, draft: Value) -> Result<Checked, Status> {
    let resource = call.served.resource;
    let errors = kinds::validate::create(resource.group, resource.version, resource.kind, &draft);
    refuse(call, &draft, errors)?;
    Ok(Checked(draft))
}

pub(super) fn next_object(call: &Call<'_>, draft: Value, current: &Value) -> Result<Checked, Status> {
    let resource = call.served.resource;
    let (group, version, kind) = (resource.group, resource.version, resource.kind);
    let errors = match call.target.subresource.as_str() {
        "" => kinds::validate::update(group, version, kind, &draft, current),
        subresource => {
            kinds::validate::subresource_update(group, version, kind, subresource, &draft, current)
        }
    };
    refuse(call, &draft, errors)?;
    Ok(Checked(draft))
}

fn refuse(call: &Call<'_>, draft: &Value, errors: api::field::ErrorList) -> Result<(), Status> {
    let name = object::name(draft);
    errors.into_result().map_err(|errors| Status::invalid(&call.served.group_kind(), name, &errors))
}
