//! The names of a custom resource: labels of DNS, kinds in mixed case.

use api::field::ErrorList;
use api::name::Format;

use crate::validate::at::At;

pub(super) fn check_required(names: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if names.text_of(field).is_empty() {
            names.field(field).required(errors, "");
        }
    }
}

pub(super) fn check(names: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["plural", "singular"] {
        let name = names.field(field);
        if !name.text().is_empty() {
            check_label(&name, errors);
        }
    }
    for field in ["kind", "listKind"] {
        let kind = names.field(field);
        let problems = Format::Dns1035Label.problems(&kind.text().to_lowercase());
        if !kind.text().is_empty() && !problems.is_empty() {
            let problem = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            kind.invalid_text(errors, problem);
        }
    }
    check_all(&names.field("shortNames"), errors);
    if !names.text_of("kind").is_empty() && names.text_of("kind") == names.text_of("listKind") {
        names.field("listKind").invalid_text(errors, "kind and listKind may not be the same");
    }
    check_all(&names.field("categories"), errors);
}

/// All that is wrong with it is one error.
pub(super) fn check_label(name: &At<'_, '_>, errors: &mut ErrorList) {
    let problems = Format::Dns1035Label.problems(name.text());
    if !problems.is_empty() {
        name.invalid_text(errors, problems.join(","));
    }
}

fn check_all(names: &At<'_, '_>, errors: &mut ErrorList) {
    for name in names.items() {
        check_label(&name, errors);
    }
}
