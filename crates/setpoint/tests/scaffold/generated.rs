//! What `setpoint generate` writes is accepted by a cluster, and `install` puts the definitions into one.

use crate::{
    deployed,
    harness::Up,
    project::{Project, prints},
};
use std::fs;

#[test]
fn a_cluster_accepts_all_that_was_generated_and_nothing_changes_the_second_time() {
    let project = Project::with_prepared_manifests();
    let said = project.prints("generate --image registry.example.com/shop:1.0");
    assert!(said.contains("wrote     config/webhook/mutating_webhook_configuration.yaml\n"), "{said}");
    assert!(
        project.read("config/manager/deployment.yaml").contains("image: registry.example.com/shop:1.0\n")
    );
    let again = project.prints("generate --image registry.example.com/shop:1.0");
    let files = again.lines().take_while(|line| !line.is_empty());
    assert!(
        files.clone().count() > 20 && files.clone().all(|line| line.starts_with("unchanged ")),
        "{again}"
    );

    deployed::check(&project.root);
}

#[test]
fn definitions_are_installed_and_removed_as_often_as_one_likes() {
    let project = Project::with_prepared_manifests();
    let up = Up::start(&["--ephemeral", "--nodes", "0"], &project.root);
    let install = format!("install --kubeconfig {}", up.kubeconfig.display());
    for _ in 0..2 {
        assert_eq!(project.prints(&install), "installed redis.cache.acme.io\n");
    }
    let mut list = project.command("get redis");
    assert_eq!(prints(list.env("KUBECONFIG", &up.kubeconfig)), "");
    // By default the kubeconfig is that of the environment.
    for expected in ["deleted redis.cache.acme.io\n", "absent  redis.cache.acme.io\n"] {
        let mut uninstall = project.command("uninstall");
        assert_eq!(prints(uninstall.env("KUBECONFIG", &up.kubeconfig)), expected);
    }
    let refused = project.command("get redis").env("KUBECONFIG", &up.kubeconfig).output().unwrap();
    assert!(!refused.status.success());
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn a_cluster_that_refuses_is_told_with_what_to_do() {
    let project = Project::with_prepared_manifests();
    let config = project.root.join("broken.kubeconfig");
    for (kubeconfig, expected) in [
        ("{apiVersion: v1, kind: Config, current-context: none}", "correct its current-context"),
        ("text", "cannot use the kubeconfig"),
    ] {
        fs::write(&config, kubeconfig).unwrap();
        let output = project.command("install --kubeconfig broken.kubeconfig").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(expected), "{kubeconfig}: {said}");
    }
    let up = Up::start(&["--nodes", "0"], &project.root);
    let refused = |arguments: &str| {
        let output = project.command(arguments).env("KUBECONFIG", &config).output().unwrap();
        assert!(!output.status.success(), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    };
    fs::write(&config, "[]").unwrap();
    let said = refused("kubeconfig --merge");
    assert!(said.contains("is no kubeconfig: move it away, or name another file with $KUBECONFIG"), "{said}");

    fs::copy(&up.kubeconfig, &config).unwrap();
    let manifests = project.read("manifests.yaml");
    let wrong = manifests.replace("name: redis.cache.acme.io", "name: other.cache.acme.io");
    fs::write(project.root.join("manifests.yaml"), wrong).unwrap();
    let said = refused("install");
    assert!(said.contains("\"other.cache.acme.io\": correct the type"), "{said}");
    assert_eq!(up.stop(), Some(0));
    for command in ["install", "uninstall"] {
        let said = refused(command);
        assert!(said.contains("start the cluster of the kubeconfig"), "{said}");
    }
}
