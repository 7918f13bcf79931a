//! Webhooks in Python behind a real TLS server, called by the running binary.

use crate::harness::Up;
use std::{path::Path, process::Command};

#[test]
fn webhooks_in_python_are_called_over_tls() {
    let scratch = tempfile::tempdir().unwrap();
    let made =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "hooks.default.svc".to_owned()]).unwrap();
    let (certificate, key) = (scratch.path().join("hook.crt"), scratch.path().join("hook.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let python = std::env::var_os("SETPOINT_PYTHON").expect("SETPOINT_PYTHON names no interpreter");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webhooks.py");
    let mut command = Command::new(python);
    command.arg(script).arg(&up.kubeconfig).arg(&certificate).arg(&key);
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok", "{complaint}");
    assert_eq!(up.stop(), Some(0));
}
