//! Patches whose result is no object of the kind.

use super::{MAPS, Step, run, step};
use serde_json::json;

const JSON_PATCH: &str = "application/json-patch+json";

#[test]
fn a_patch_that_leaves_an_object_with_another_kind_and_no_version_is_rejected() {
    let map = json!({"metadata": {"name": "a"}});
    let patch = |kind: &str| json!([{"op": "replace", "path": "", "value": {}}, {"op": "add", "path": "/kind", "value": kind}]);
    let refused = |kind: &str, message: &'static [(&'static str, &'static str)]| {
        Step("PATCH", format!("{MAPS}/a"), JSON_PATCH, patch(kind), 422, message)
    };
    run(vec![
        step("POST", MAPS, map, 201, &[]),
        refused(
            "Always",
            &[(
                "/details/causes/0/message",
                r#"Invalid value: "{\"kind\":\"Always\"}": no kind "Always" is registered for the internal version of group "" in scheme "pkg/api/legacyscheme/scheme.go:30""#,
            )],
        ),
        refused(
            "Pod",
            &[(
                "/details/causes/0/message",
                r#"Invalid value: "{\"kind\":\"Pod\"}": converting (core.Pod) to (core.ConfigMap): unknown conversion"#,
            )],
        ),
        // Its own kind: what fails is the name, which is gone.
        Step("PATCH", format!("{MAPS}/a"), JSON_PATCH, patch("ConfigMap"), 400, &[]),
    ]);
}
