//! ControllerRevision: a state that a daemon set or stateful set can go back to.

use api::field::ErrorList;
use api::object;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, text};
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static CONTROLLER_REVISION: BuiltIn =
    BuiltIn::new(GROUP, "ControllerRevision", "controllerrevisions")
        .older_versions(&["v1beta1", "v1beta2"])
        .validation(Validation::new(check).update(UpdateChecks::METADATA.compare(check_change)))
        .columns(&[
            NAME,
            string("Controller", Cell::Computed(|it| controller(it).into())),
            string("Revision", Cell::Number("/revision")),
            AGE,
        ]);

fn check(revision: &At<'_, '_>, errors: &mut ErrorList) {
    revision.field("revision").not_negative(errors);
    let data = revision.field("data");
    if !data.is_set() {
        data.required(errors, "data is mandatory");
    } else if !data.value().is_object() {
        data.required(errors, "data must be a valid JSON object");
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("revision").not_negative(errors);
    new.field("data").immutable(errors, &old.field("data"));
}

fn controller(revision: &Row<'_>) -> String {
    let Some(owner) = object::controller(revision.object) else { return NONE.to_owned() };
    let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
    match text(&owner["apiVersion"]).rsplit_once('/') {
        Some((group, _)) => format!("{}/{name}", format!("{kind}.{group}").to_lowercase()),
        None => format!("{}/{name}", kind.to_lowercase()),
    }
}
