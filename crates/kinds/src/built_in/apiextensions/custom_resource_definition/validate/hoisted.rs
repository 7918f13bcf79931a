//! Kubernetes keeps what all versions share at the top of a definition, and tells errors of it there.

use serde_json::Value;

use crate::validate::at::At;

static NOTHING: Value = Value::Null;

/// Where the parts of a definition lie that versions can have for themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'v> {
    pub(super) schema: Part<'v>,
    pub(super) subresources: Part<'v>,
    pub(super) columns: Part<'v>,
    pub(super) selectable: Part<'v>,
}

/// One such part: what all versions share, if they do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'v> {
    member: &'static str,
    shared: Option<&'v Value>,
}

impl<'v> Layout<'v> {
    pub(super) fn of(spec: &At<'v, '_>) -> Self {
        let versions = spec.value().get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Layout {
            schema: Part::of("schema", versions),
            subresources: Part::of("subresources", versions),
            columns: Part::of("additionalPrinterColumns", versions),
            selectable: Part::of("selectableFields", versions),
        }
    }
}

impl<'v> Part<'v> {
    fn of(member: &'static str, versions: &'v [Value]) -> Self {
        let mut values = versions.iter().map(|version| version.get(member).unwrap_or(&NOTHING));
        let first = values.next().unwrap_or(&NOTHING);
        let shared = values.all(|value| same(value, first)).then_some(first);
        Part { member, shared }
    }

    /// What lies at the top.
    pub(super) fn top(&self) -> &'v Value {
        self.shared.unwrap_or(&NOTHING)
    }

    /// What lies in a version.
    pub(super) fn of_version(&self, version: &'v Value) -> &'v Value {
        match self.shared {
            Some(_) => &NOTHING,
            None => version.get(self.member).unwrap_or(&NOTHING),
        }
    }

    /// What holds for a version, wherever it lies.
    pub(super) fn for_version(&self, version: &'v Value) -> &'v Value {
        self.shared.unwrap_or_else(|| self.of_version(version))
    }
}

/// An empty list is none.
fn same(one: &Value, other: &Value) -> bool {
    let is_nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    one == other || is_nothing(one) && is_nothing(other)
}
