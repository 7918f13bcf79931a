//! Selectors of devices: expressions that must compile, and come to true or false.

use std::sync::LazyLock;

use api::field::{Error, ErrorList};
use expression::{
    Env, Type,
    library::bindings,
    ty::{Field, Object},
};

use super::each;
use crate::validate::at::At;

const MAX_SELECTORS: usize = 32;
const MAX_EXPRESSION_BYTES: usize = 10 << 10;

static DEVICE: LazyLock<Env> = LazyLock::new(|| {
    let by_domain = |value| Type::map(Type::String, Type::map(Type::String, value));
    let fields = [
        ("driver", Type::String),
        ("allowMultipleAllocations", Type::Bool),
        ("attributes", by_domain(Type::Dyn)),
        ("capacity", by_domain(Type::Opaque("kubernetes.Quantity"))),
    ];
    let fields = fields.into_iter().map(|(name, ty)| Field { name: name.into(), ty }).collect();
    let device = Type::Object(Object::new("kubernetes.DRADevice", fields));
    Env::kubernetes().with_libraries(vec![bindings::library()]).with_variable("device", device)
});

pub(super) fn check_all(selectors: &At<'_, '_>, errors: &mut ErrorList) {
    each(selectors, MAX_SELECTORS, errors, |selector, errors| {
        let cel = selector.field("cel");
        if cel.is_set() {
            expression(&cel.field("expression"), errors);
        } else {
            cel.required(errors, "");
        }
    });
}

fn expression(at: &At<'_, '_>, errors: &mut ErrorList) {
    if at.text().len() > MAX_EXPRESSION_BYTES {
        errors.push(Error::too_long(at.path(), MAX_EXPRESSION_BYTES));
        return;
    }
    match DEVICE.compile(at.text()) {
        Err(issues) => at.invalid_text(errors, format!("compilation failed: {issues}")),
        Ok(checked) if matches!(checked.output_type(), Type::Bool | Type::Dyn) => {}
        Ok(checked) => {
            let found = match checked.output_type() {
                // Kubernetes: as the library calls it.
                Type::Null => "null_type".to_owned(),
                other => other.to_string(),
            };
            let problem = format!("must evaluate to bool or the unknown type, not {found}");
            at.invalid_text(errors, problem);
        }
    }
}
