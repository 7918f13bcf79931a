//! A cluster gets all that `setpoint generate` has written into `config/`, twice.

use crate::harness::{SETPOINT, Up};
use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// What others need is applied first.
const FIRST: [&str; 3] = ["kind: Namespace", "kind: CustomResourceDefinition", "kind: ServiceAccount"];

/// The objects in `config/`, without samples, as one YAML file.
fn generated(root: &Path) -> String {
    let mut texts = BTreeMap::new();
    for folder in fs::read_dir(root.join("config")).unwrap().flatten().map(|entry| entry.path()) {
        if !folder.is_dir() || folder.ends_with("samples") {
            continue;
        }
        for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
            if !path.ends_with("kustomization.yaml") {
                let text = fs::read_to_string(&path).unwrap();
                let order = FIRST.iter().position(|kind| text.lines().any(|line| line == *kind));
                texts.insert((order.unwrap_or(FIRST.len()), path), text);
            }
        }
    }
    texts.into_values().collect::<Vec<_>>().join("---\n")
}

/// Nothing is refused, and the second time nothing changes.
pub(crate) fn check(root: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let text = generated(root);
    let objects = text.lines().filter(|line| line.starts_with("kind: ")).count();
    assert!(objects >= 10, "{objects} objects are no operator");
    fs::write(scratch.path().join("all.yaml"), text).unwrap();
    let up = Up::start(&["--ephemeral", "--nodes", "0"], scratch.path());
    for outcome in [" created", " unchanged"] {
        let mut apply = Command::new(SETPOINT);
        apply.args(["apply", "-f", "all.yaml"]).current_dir(scratch.path());
        let output = apply.env("KUBECONFIG", &up.kubeconfig).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(said.lines().filter(|line| line.ends_with(outcome)).count(), objects, "{said}");
    }
    assert_eq!(up.stop(), Some(0));
}
