//! The chart that `setpoint generate` writes is installed and upgraded by Helm.

use super::Cluster;
use crate::project::{Project, objects, prints};
use std::process::Command;

#[test]
fn the_chart_is_rendered_installed_and_upgraded() {
    let project = Project::with_prepared_manifests();
    project.prints("generate --image registry.example.com/shop:1.0");
    let cluster = Cluster::start(&project);
    let helm = |arguments: &str| {
        let mut command =
            Command::new(std::env::var_os("SETPOINT_HELM").expect("SETPOINT_HELM names no helm"));
        command.args(arguments.split(' ')).current_dir(&project.root).env("HOME", &project.root);
        prints(command.env("KUBECONFIG", cluster.kubeconfig()))
    };
    let rendered =
        objects(&helm("template shop charts/shop --namespace elsewhere --set replicas=2 --include-crds"));
    let generated = objects(&project.read("manifests.yaml"));
    assert_eq!(rendered.len(), generated.len());
    let deployment = rendered.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["metadata"]["namespace"], "elsewhere");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.example.com/shop:1.0");

    let install = "upgrade --install shop charts/shop --namespace shop-system --create-namespace";
    helm(install);
    helm(install);
    assert!(helm("list --namespace shop-system").contains("deployed"));
}
