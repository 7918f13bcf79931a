//! What projects are made of, under the programs that people use with it: kubectl, Helm and Go. `cargo xtask test` finds
//! them and sets the variables that name them.

mod built_by_kubectl;
mod go;
mod helm;

use crate::{
    harness::Up,
    project::{Project, prints},
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The kinds of cert-manager that a project uses, without what makes certificates.
const CERT_MANAGER: [(&str, &str); 2] = [("issuers", "Issuer"), ("certificates", "Certificate")];

/// A cluster for the manifests of a project.
struct Cluster {
    up: Up,
    root: PathBuf,
}

impl Cluster {
    fn start(project: &Project) -> Cluster {
        let up = Up::start(&["--ephemeral", "--nodes", "0"], &project.root);
        Cluster { up, root: project.root.clone() }
    }

    fn kubeconfig(&self) -> &Path {
        &self.up.kubeconfig
    }

    /// What kubectl prints, in the folder of the project.
    fn kubectl(&self, arguments: &str) -> String {
        let program = std::env::var_os("SETPOINT_KUBECTL").expect("SETPOINT_KUBECTL names no kubectl");
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).current_dir(&self.root).env("HOME", &self.root);
        prints(command.env("KUBECONFIG", self.kubeconfig()))
    }

    fn define_cert_manager(&self) {
        let definition = |(plural, kind): (&str, &str)| {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let version =
                json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.cert-manager.io")},
                "spec": {
                    "group": "cert-manager.io",
                    "scope": "Namespaced",
                    "names": {"plural": plural, "kind": kind},
                    "versions": [version],
                },
            })
        };
        let list = json!({"apiVersion": "v1", "kind": "List", "items": CERT_MANAGER.map(definition)});
        let path = self.root.join("cert-manager.json");
        std::fs::write(&path, list.to_string()).unwrap();
        self.kubectl(&format!("apply -f {}", path.display()));
    }
}
