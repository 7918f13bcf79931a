//! What an operator of the server reads in its log.

use crate::{harness::Up, kube_client::with_client_of};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use std::{fs::File, path::Path, process::Stdio};

/// The lines of a server with these options that has answered a create and a failed delete.
fn lines(options: &[&str], scratch: &Path) -> String {
    let log = scratch.join("log");
    let options = [&["--ephemeral"], options].concat();
    let up = Up::start_logging(&options, scratch, Stdio::from(File::create(&log).unwrap()));
    with_client_of(up, |client| async {
        let api: Api<Namespace> = Api::all(client);
        let namespace = serde_json::from_value(json!({"metadata": {"name": "logged"}})).unwrap();
        api.create(&PostParams::default(), &namespace).await.unwrap();
        api.delete("missing", &DeleteParams::default()).await.unwrap_err();
    });
    std::fs::read_to_string(log).unwrap()
}

#[test]
fn verbose_logs_in_json_tell_who_wrote_what_and_how_it_was_answered() {
    let scratch = tempfile::tempdir().unwrap();
    let lines = lines(&["-v", "--log-format", "json"], scratch.path());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |verb: &str, code: u16, name: Value| {
        lines.iter().any(|line| {
            let seen = json!([
                line["span"],
                line["verb"],
                line["code"],
                line["resource"],
                line["name"],
                line["caller"]
            ]);
            seen == json!(["request", verb, code, "namespaces", name, "kubernetes-admin"])
        })
    };
    assert!(told("create", 201, Value::Null), "{lines:#?}");
    assert!(told("delete", 404, json!("missing")), "{lines:#?}");
}

#[test]
fn without_options_a_server_that_has_no_problem_logs_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(lines(&[], scratch.path()), "");
}
