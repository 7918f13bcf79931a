//! The log that an operator of the server reads.

use crate::{harness::Up, kube_client::with_client_of};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use std::{fs::File, path::Path, process::Stdio};

/// The log of a server with these options after a create and a failed delete.
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
fn verbose_json_logs_have_caller_object_and_code_of_each_write() {
    let scratch = tempfile::tempdir().unwrap();
    let lines = lines(&["-v", "--log-format", "json"], scratch.path());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let logged = |verb: &str, code: u16, name: Value| {
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
    assert!(logged("create", 201, Value::Null), "{lines:#?}");
    assert!(logged("delete", 404, json!("missing")), "{lines:#?}");
}

#[test]
fn without_options_a_healthy_server_logs_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(lines(&[], scratch.path()), "");
}
