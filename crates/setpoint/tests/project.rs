//! A project in a temporary folder, and what is typed in it.

use crate::harness::SETPOINT;
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Stands in for cargo, which would compile the framework for minutes. An operator that prints the file
/// `manifests.yaml`; its build fails while there is a file `broken`. Each call is a line in the file `calls`.
const CARGO: &str = r#"#!/bin/sh
echo "$*" >> calls
case "$*" in
build) test ! -e broken ;;
*manifests) sed "s|NAMESPACE|$OPERATOR_NAMESPACE|g; s|IMAGE|$OPERATOR_IMAGE|g" manifests.yaml ;;
"run --quiet")
    sleep 600 &
    trap 'kill $!; echo stopped >> calls; exit 0' INT TERM
    echo started >> calls
    echo the operator has started
    wait ;;
esac
"#;
/// What the example prints that has all sorts of objects: definition, rights, Deployment, Service and webhooks.
const MANIFESTS: [&str; 2] = [
    include_str!("../../../examples/redis/manifests/definition.yaml"),
    include_str!("../../../examples/redis/manifests/operator.yaml"),
];

pub(crate) struct Project {
    folder: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Project {
    /// `setpoint new shop` with these further options.
    pub(crate) fn new(options: &str) -> Project {
        let folder = tempfile::tempdir().unwrap();
        let project = Project { root: folder.path().join("shop"), folder };
        fs::create_dir(&project.root).unwrap();
        project.prints(format!("new shop --domain acme.io --path . {options}").trim());
        project
    }

    /// A Rust project with a kind, whose manifests are prepared.
    pub(crate) fn with_prepared_manifests() -> Project {
        let project = Project::new("");
        let cargo = project.cargo();
        fs::write(&cargo, CARGO).unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        let manifests = MANIFESTS.join("---\n").replace("namespace: default", "namespace: NAMESPACE");
        let manifests = manifests.replace("name: default:", "name: NAMESPACE:");
        let manifests = manifests.replace("image: redis-operator:latest", "image: IMAGE");
        fs::write(project.root.join("manifests.yaml"), manifests).unwrap();
        project
    }

    fn cargo(&self) -> PathBuf {
        self.folder.path().join("cargo")
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(SETPOINT);
        command.args(arguments.split(' ')).current_dir(&self.root).env("CARGO", self.cargo());
        command
    }

    /// What a command prints that succeeds.
    pub(crate) fn prints(&self, arguments: &str) -> String {
        prints(&mut self.command(arguments))
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }
}

/// What a command prints that succeeds.
pub(crate) fn prints(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The documents of a YAML file.
pub(crate) fn objects(yaml: &str) -> Vec<Value> {
    let documents = yaml.split("\n---\n").map(|text| schema::yaml::to_json(text.as_bytes()).unwrap().json);
    let objects = documents.map(|json| serde_json::from_slice::<Value>(&json).unwrap());
    objects.filter(|object| !object.is_null()).collect()
}

/// What an image is made from that is not there.
pub(crate) fn missing_for_the_image(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("Dockerfile")).unwrap();
    let copies = text.lines().filter_map(|line| line.strip_prefix("COPY "));
    let own = copies.filter(|copy| !copy.starts_with("--from="));
    let sources = own.flat_map(|copy| copy.rsplit_once(' ').map_or("", |(sources, _)| sources).split(' '));
    sources.filter(|source| !root.join(source).exists()).map(str::to_owned).collect()
}
