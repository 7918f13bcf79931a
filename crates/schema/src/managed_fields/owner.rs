//! The owner of fields: a manager's name and how it writes (update or apply, version, subresource).

use api::field::{BadValue, Error, ErrorList, Path};
use api::go;
use serde_json::Value;

/// Kubernetes: the longest name of a manager.
pub const MAX_MANAGER_BYTES: usize = 128;

/// Kubernetes: the longest name of a subresource.
const MAX_SUBRESOURCE_BYTES: usize = 256;

/// One entry of managedFields: the same manager has several where operation, version or subresource differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub manager: String,
    pub operation: Operation,
    /// `None` for appliers, which keep their entry when they change the version.
    pub version: Option<String>,
    /// Empty for the resource itself.
    pub subresource: String,
}

/// The operation of a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Owner {
    pub(super) fn new(manager: &str, operation: Operation, version: &str, subresource: &str) -> Self {
        // Kubernetes: a request that names no manager, and has no user agent either.
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Owner::of_entry(manager, operation, version, subresource)
    }

    pub(super) fn of_entry(manager: &str, operation: Operation, version: &str, subresource: &str) -> Self {
        Owner {
            manager: manager.to_owned(),
            operation,
            version: (operation == Operation::Update).then(|| version.to_owned()),
            subresource: subresource.to_owned(),
        }
    }

    /// The text by which kube-apiserver sorts owners.
    pub(super) fn identifier(&self) -> String {
        let mut parts = Vec::with_capacity(4);
        let operation = Some(self.operation.text());
        for (name, value) in [
            ("manager", Some(self.manager.as_str())),
            ("operation", operation),
            ("apiVersion", self.version.as_deref()),
            ("subresource", Some(self.subresource.as_str())),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                parts.push(format!("\"{name}\":{}", go::json(value).unwrap_or_default()));
            }
        }
        format!("{{{}}}", parts.join(","))
    }

    /// How conflicts name it: `"kubectl" with subresource "scale" using apps/v1`.
    #[must_use]
    pub fn title(&self) -> String {
        let mut title = go::quote(&self.manager);
        if !self.subresource.is_empty() {
            title.push_str(&format!(" with subresource {}", go::quote(&self.subresource)));
        }
        if let Some(version) = &self.version {
            title.push_str(&format!(" using {version}"));
        }
        title
    }
}

impl Operation {
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        [Operation::Apply, Operation::Update].into_iter().find(|operation| operation.text() == text)
    }
}

/// The manager of a request: its `fieldManager`, otherwise the user agent up to the first slash.
#[must_use]
pub fn manager_of(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for c in program.chars().filter(|c| go::is_print(*c)) {
        if manager.len() + c.len_utf8() > MAX_MANAGER_BYTES {
            break;
        }
        manager.push(c);
    }
    manager
}

/// Validates the name of a manager. An empty one was not given, and is fine.
#[must_use]
pub fn validate_manager(manager: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MAX_MANAGER_BYTES {
        errors.push(Error::too_long(path, MAX_MANAGER_BYTES));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !go::is_print(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(Error::invalid(path, manager, detail));
    }
    errors
}

/// Validates the `managedFields` of an object.
#[must_use]
pub fn validate_entries(entries: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let path = path.index(at);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("operation") {
            "" => errors.push(Error::required(&path.child("operation"), "must not be empty")),
            operation if Operation::from_text(operation).is_some() => {}
            operation => {
                let supported = [Operation::Apply, Operation::Update].map(Operation::text);
                errors.push(Error::not_supported(
                    &path.child("operation"),
                    BadValue::json(operation),
                    supported,
                ));
            }
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            errors.push(Error::invalid(&path.child("fieldsType"), text("fieldsType"), "must be `FieldsV1`"));
        }
        errors.extend(validate_manager(text("manager"), &path.child("manager")));
        if text("subresource").len() > MAX_SUBRESOURCE_BYTES {
            errors.push(Error::too_long(&path.child("subresource"), MAX_SUBRESOURCE_BYTES));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn manager_is_the_field_manager_or_the_user_agent() {
        let long = "é".repeat(100);
        for (manager, user_agent, expected) in [
            ("me", "kubectl/v1.36", "me"),
            ("", "kubectl/v1.36 (linux/amd64)", "kubectl"),
            ("", "Go-http-client", "Go-http-client"),
            ("", "a\tb\u{200b} c/1", "ab c"),
            ("", "", ""),
            ("", long.as_str(), &long[..128]),
        ] {
            assert_eq!(manager_of(manager, user_agent), expected);
        }
    }

    #[test]
    fn managers_are_short_and_printable() {
        for (manager, expected) in [
            ("", vec![]),
            ("fine ☃", vec![]),
            (&"m".repeat(129), vec!["fieldManager: Too long: may not be more than 128 bytes"]),
            (
                "a\u{7}",
                vec![r#"fieldManager: Invalid value: "a\a": invalid character U+0007 (at position 1)"#],
            ),
        ] {
            let errors = validate_manager(manager, &Path::new("fieldManager"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn entries_are_validated() {
        let entries = json!([
            {"operation": "Apply", "fieldsType": "FieldsV1", "manager": "m"},
            {"operation": "", "manager": "a\nb"},
            {"operation": "Patch", "fieldsType": "FieldsV2", "subresource": "s".repeat(257)},
        ]);
        let metadata = Path::new("metadata");
        let errors = validate_entries(&entries, &metadata.child("managedFields"));
        let expected = [
            "metadata.managedFields[1].operation: Required value: must not be empty",
            concat!(
                r#"metadata.managedFields[1].manager: Invalid value: "a\nb": "#,
                "invalid character U+000A (at position 1)"
            ),
            concat!(
                r#"metadata.managedFields[2].operation: Unsupported value: "Patch": "#,
                r#"supported values: "Apply", "Update""#
            ),
            r#"metadata.managedFields[2].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`"#,
            "metadata.managedFields[2].subresource: Too long: may not be more than 256 bytes",
        ];
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn owners_have_titles_and_identifiers() {
        let update = Owner::new("a\"<b", Operation::Update, "apps/v1", "scale");
        assert_eq!(update.title(), r#""a\"<b" with subresource "scale" using apps/v1"#);
        let identifier =
            r#"{"manager":"a\"\u003cb","operation":"Update","apiVersion":"apps/v1","subresource":"scale"}"#;
        assert_eq!(update.identifier(), identifier);
        let apply = Owner::new("", Operation::Apply, "apps/v1", "");
        assert_eq!((apply.title().as_str(), apply.version), (r#""unknown""#, None));
    }
}
