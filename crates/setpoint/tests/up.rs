//! `setpoint up` with the real binary, real signals, real files.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bench;
mod client;
mod deployed;
mod dns;
mod harness;
mod kube_apiserver;
mod kube_client;
mod logs;
mod node_join;
mod nodes;
mod operators;
mod overload;
mod project;
mod reference;
mod scaffold;
mod service_account;
mod testing_api;

use harness::{SETPOINT, Up};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn up_prints_when_it_is_ready_and_stops_cleanly_on_sigterm() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    assert!(up.url.starts_with("https://127.0.0.1:"), "{}", up.url);
    let kubeconfig = std::fs::read_to_string(&up.kubeconfig).unwrap();
    assert!(kubeconfig.contains(&format!("server: {}", up.url)), "{kubeconfig}");
    assert_eq!(mode(&up.kubeconfig), 0o600);
    assert_eq!(up.stop(), Some(0));
    assert!(!scratch.path().join(".setpoint/store").exists(), "nothing is kept");
}

#[test]
fn a_second_start_uses_the_same_certificates() {
    let scratch = tempfile::tempdir().unwrap();
    let ca = scratch.path().join(".setpoint/pki/ca.crt");
    let first = Up::start(&[], scratch.path());
    let before = std::fs::read(&ca).unwrap();
    for name in ["ca.crt", "ca.key", "server.key", "admin.key", "sa.key"] {
        assert_eq!(mode(&ca.with_file_name(name)), 0o600, "{name}");
    }
    assert_eq!(first.stop(), Some(0));
    let second = Up::start(&[], scratch.path());
    assert_eq!(std::fs::read(&ca).unwrap(), before);
    assert_eq!(second.stop(), Some(0));
}

/// The one-line error of a failed start.
fn refusal(arguments: &[&str], directory: &Path) -> String {
    let output = Command::new(SETPOINT).arg("up").args(arguments).current_dir(directory).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    said
}

#[test]
fn an_ephemeral_cluster_does_not_overwrite_the_kubeconfig_of_a_lasting_one() {
    let scratch = tempfile::tempdir().unwrap();
    let lasting = Up::start(&["--controllers=", "--nodes=0"], scratch.path());
    let before = fs::read_to_string(&lasting.kubeconfig).unwrap();
    let ephemeral = Up::start(&["--ephemeral", "--controllers=", "--nodes=0"], scratch.path());
    assert!(ephemeral.kubeconfig.ends_with(".setpoint/ephemeral.kubeconfig"), "{:?}", ephemeral.kubeconfig);
    assert!(fs::read_to_string(&ephemeral.kubeconfig).unwrap().contains(&ephemeral.url));
    assert_eq!(fs::read_to_string(&lasting.kubeconfig).unwrap(), before);
}

#[test]
fn a_failed_start_prints_one_line_with_the_remedy() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&[], scratch.path());
    let holder =
        format!("is in use by process {}: stop that process, or choose another --data-dir", up.process.id());
    let taken = up.url.strip_prefix("https://").unwrap().to_owned();
    let file = scratch.path().join("file");
    std::fs::write(&file, "a,b\n").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, expected) in [
        (&["--listen", "127.0.0.1:0"][..], holder.as_str()),
        (&["--listen", &taken, "--ephemeral"], "choose another address with --listen"),
        (
            &["--listen", "127.0.0.1:0", "--data-dir", file],
            "check that --data-dir is on a disk you may write to",
        ),
        (
            &["--listen", "127.0.0.1:0", "--ephemeral", "--token-auth-file", file],
            "for each user: line 1: expected at least 3 columns",
        ),
        (&["--listen", "127.0.0.1:0", "--store", "etcd"], "check --etcd-servers"),
        (
            &["--listen", "127.0.0.1:0", "--ephemeral", "--audit-policy-file", file, "--audit-log-path", "-"],
            "use an audit.k8s.io/v1 Policy",
        ),
    ] {
        let said = refusal(arguments, scratch.path());
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn the_audit_log_is_complete_when_the_process_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let policy = scratch.path().join("policy.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
        .unwrap();
    let log = scratch.path().join("logs/audit.log");
    let arguments = ["--audit-policy-file", "policy.yaml", "--audit-log-path", "logs/audit.log"];
    for round in 1..=2 {
        let up = Up::start(&arguments, scratch.path());
        assert_eq!(up.stop(), Some(0));
        assert_eq!(mode(&log), 0o600);
        let text = std::fs::read_to_string(&log).unwrap();
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let stage = |stage: &str| events.iter().filter(|event| event["stage"] == stage).count();
        assert!(stage("RequestReceived") >= round, "the server's own requests are recorded, too");
        // Except the server's own request that was pending when it stopped, in each round.
        assert!(stage("ResponseComplete") + round >= stage("RequestReceived"), "requests come to their end");
    }
}
