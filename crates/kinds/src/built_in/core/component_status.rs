//! ComponentStatus: whether a part of the control plane is well. It is never written.

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{Cell, NAME, string};
use crate::cells::row::{Row, condition, text};

pub(crate) static COMPONENT_STATUS: BuiltIn = BuiltIn::new(GROUP, "ComponentStatus", "componentstatuses")
    .deprecated("v1", "v1 ComponentStatus is deprecated in v1.19+")
    .columns(&[
        NAME,
        string("Status", Cell::Computed(|it| status(it).into())),
        string("Message", Cell::Computed(|it| of_health(it, "message").into())),
        string("Error", Cell::Computed(|it| of_health(it, "error").into())),
    ]);

fn status(component: &Row<'_>) -> &'static str {
    match condition(component.at("/conditions"), "Healthy") {
        None => "Unknown",
        Some(health) if health["status"] == "True" => "Healthy",
        Some(_) => "Unhealthy",
    }
}

fn of_health<'a>(component: &Row<'a>, member: &str) -> &'a str {
    condition(component.at("/conditions"), "Healthy").map_or("", |health| text(&health[member]))
}
