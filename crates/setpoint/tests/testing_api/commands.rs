//! `setpoint testing`: the verbs of the testing API as commands.

use super::{Tested, client_of, maps, put_map, with_cluster};
use crate::harness::SETPOINT;
use kube::config::Kubeconfig;
use std::process::Command;

const FAULT: &str = "\
apiVersion: testing.setpoint.dev/v1
kind: Fault
metadata: {name: no-secrets}
spec:
  match: {verb: get, resource: secrets}
  refuse: {code: 403, reason: Forbidden}
";

#[test]
fn commands_steer_a_cluster() {
    with_cluster(&[], async |tested: &Tested| {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(SETPOINT);
            command
                .arg("testing")
                .args(arguments)
                .current_dir(tested.scratch.path())
                .env_remove("KUBECONFIG");
            let output = command.output().unwrap();
            let (said, complaint) = (
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            );
            assert!(output.status.success(), "{arguments:?}: {said}{complaint}");
            said.trim().to_owned()
        };
        run(&["snapshot", "start"]);
        put_map(&tested.client, "web", "1").await;
        let line = run(&["fork", "mine", "--export", "--write-kubeconfig", "mine.kubeconfig"]);
        assert_eq!(line, "export KUBECONFIG=mine.kubeconfig");
        let path = tested.scratch.path().join("mine.kubeconfig");
        let mine = client_of(Kubeconfig::read_from(&path).unwrap()).await;
        assert!(maps(&mine).get_opt("web").await.unwrap().is_some());
        assert!(run(&["restore", "start"]).ends_with("1 deleted"), "the ConfigMap");
        assert!(run(&["settle"]).starts_with("settled at revision "));
        assert!(run(&["clock", "--freeze"]).ends_with("(frozen)"));
        assert!(run(&["clock", "--run", "--advance", "10m"]).ends_with('Z'));
        std::fs::write(tested.scratch.path().join("fault.yaml"), FAULT).unwrap();
        assert_eq!(run(&["fault", "-f", "fault.yaml"]), "no-secrets");
        assert!(run(&["trace", "--verb", "patch", "--resource", "configmaps"]).contains("configmaps/web"));
        assert_eq!(run(&["fault", "--delete", "no-secrets", "--list"]), "");
        run(&["reset"]);
        run(&["fork", "mine", "--delete"]);
    });
}
