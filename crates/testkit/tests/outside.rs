//! An unmodified kubectl looks into the cluster of a test. `cargo xtask test` finds the program.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod kubectl {
    use k8s_openapi::api::core::v1::ConfigMap;
    use std::process::Command;

    #[test]
    fn kubectl_looks_into_a_test_and_changes_it() {
        testkit::run(|cluster| async move {
            cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: b}}").await;
            for (line, expected) in [
                ("get configmap web -o jsonpath={.data.a}", "b"),
                ("create configmap made --from-literal=size=large", "configmap/made created"),
                ("wait --for=create --timeout=5s configmap/made", "configmap/made condition met"),
                // Newer ones add the namespace.
                ("delete configmap web", "configmap \"web\" deleted"),
                ("auth whoami -o jsonpath={.status.userInfo.username}", "kubernetes-admin"),
            ] {
                let program =
                    std::env::var_os("SETPOINT_KUBECTL").expect("SETPOINT_KUBECTL names no kubectl");
                let mut kubectl = Command::new(program);
                kubectl.args(line.split(' ')).env("KUBECONFIG", cluster.kubeconfig());
                let output = cluster.outside(move || kubectl.output().unwrap()).await;
                let said = String::from_utf8(output.stdout).unwrap();
                let complaint = String::from_utf8_lossy(&output.stderr);
                assert!(said.starts_with(expected), "kubectl {line}: {said}{complaint}");
            }
            let made: ConfigMap = cluster.get("default", "made").await;
            assert_eq!(made.data.unwrap()["size"], "large");
            assert!(cluster.find::<ConfigMap>("default", "web").await.is_none());
        });
    }
}
