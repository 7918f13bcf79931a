//! `setpoint assets`: the programs of test environments, with the everyday commands under the name of kubectl where there is none.

use super::{Folder, WEB, text};
use crate::harness::SETPOINT;
use std::{
    os::unix::process::CommandExt,
    process::{Command, Output},
};

/// A cluster, and the programs in a folder `tools`.
struct Assets {
    folder: Folder,
}

impl Assets {
    fn new() -> Assets {
        let folder = Folder::new();
        let mut command = folder.command("assets tools");
        let said = text(&command.env("PATH", "").output().unwrap().stdout);
        let dir = folder.scratch.path().join("tools");
        assert_eq!(said, format!("export KUBEBUILDER_ASSETS={}\n", dir.display()));
        Assets { folder }
    }

    fn run(&self, program: &str, line: &str) -> Output {
        let folder = self.folder.scratch.path();
        let mut command = Command::new(folder.join("tools").join(program));
        command.args(line.split(' ')).env("HOME", folder).current_dir(folder);
        command.env("KUBECONFIG", &self.folder.up.kubeconfig).output().unwrap()
    }

    fn kubectl(&self, line: &str) -> String {
        let output = self.run("kubectl", line);
        assert!(output.status.success(), "kubectl {line}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn kubectl_refuses(&self, line: &str) -> String {
        let output = self.run("kubectl", line);
        assert_eq!(output.status.code(), Some(1), "kubectl {line}: {}", text(&output.stdout));
        text(&output.stderr)
    }
}

#[test]
fn assets_act_by_their_names() {
    let assets = Assets::new();
    assert!(text(&assets.run("kube-apiserver", "--help").stdout).contains("kube-apiserver of Setpoint"));
    assert!(text(&assets.run("etcd", "--help").stdout).contains("etcd of Setpoint"));
    assert_eq!(assets.kubectl("-n kube-system get ns default -o name"), "namespace/default\n");
    let said = assets.kubectl("version");
    assert!(said.contains("Client Version: v1.36") && said.contains("Server Version: v1.36"), "{said}");
    let said = assets.kubectl_refuses("drain node");
    assert!(
        said.contains("unknown command \"drain\"") && said.contains("install the real kubectl"),
        "{said}"
    );
    // Called by another name, it is itself.
    let mut command = Command::new(SETPOINT);
    assert!(command.arg0("other").arg("--help").output().unwrap().status.success());
}

#[test]
fn kubectl_of_the_assets_applies_waits_and_deletes() {
    let assets = Assets::new();
    assets.folder.file("web.yaml", WEB);
    assert_eq!(assets.kubectl("apply -f web.yaml"), "deployment.apps/web created\n");
    assert_eq!(
        assets.kubectl("--namespace=default apply --filename web.yaml"),
        "deployment.apps/web unchanged\n"
    );
    let waited = "deployment.apps/web condition met\n";
    assert_eq!(assets.kubectl("wait --for=condition=Available deploy/web --timeout=30s"), waited);
    assert_eq!(
        assets.kubectl("wait deployment web --for=jsonpath={.status.readyReplicas}=2 --timeout=30s"),
        waited
    );
    let rows = assets.kubectl("get pods -l app=web --no-headers=true -o custom-columns=P:.status.phase");
    assert_eq!(rows, "Running\nRunning\n");
    let said = assets.kubectl_refuses("wait --for=condition=Progressing=False deploy/web --timeout=100ms");
    assert!(said.contains("timed out waiting for the condition on deployments/web"), "{said}");
    let deleted = assets.kubectl("delete deployment web --cascade=foreground --wait=true");
    assert!(deleted.starts_with("deployment.apps \"web\" deleted"), "{deleted}");
    assert_eq!(assets.kubectl("wait --for=delete pod -l app=web --timeout=30s"), "");
    let said = assets.kubectl_refuses("delete -f web.yaml");
    assert!(said.ends_with("deployments.apps \"web\" not found\n"), "{said}");
    assert_eq!(assets.kubectl("delete -f web.yaml --ignore-not-found"), "");
}
