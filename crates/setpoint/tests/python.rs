//! The Python package `kubernetes`, unmodified, against the running binary.
//!
//! `cargo xtask test` fetches the package and sets `SETPOINT_PYTHON` to its interpreter.

use crate::harness::Up;
use std::{path::Path, process::Command};

#[test]
fn the_python_client_creates_watches_resumes_and_patches() {
    let scratch = tempfile::tempdir().unwrap();
    // The script writes a status itself.
    let up = Up::start(&["--ephemeral", "--controllers="], scratch.path());
    let python = std::env::var_os("SETPOINT_PYTHON").expect("SETPOINT_PYTHON names no interpreter");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python_client.py");
    let output = Command::new(python).arg(script).arg(&up.kubeconfig).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok", "{complaint}");
    assert_eq!(up.stop(), Some(0));
}
