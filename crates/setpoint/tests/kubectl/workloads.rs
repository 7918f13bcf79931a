//! Rollouts, jobs, drains and deletions, carried out by the control loops, the scheduler and simulated nodes.

use super::{Kubectl, MANIFEST};

const SETS: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: redis}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: agent}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: db}}}
";

impl Kubectl {
    fn names(&self, line: &str) -> Vec<String> {
        self.output_of(&format!("get {line} -o name")).lines().map(str::to_owned).collect()
    }

    fn rolled_out(&self, object: &str) {
        let said = self.output_of(&format!("rollout status {object} --timeout=60s"));
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains("successfully rolled out") || last.contains("complete"), "{said}");
    }

    fn image(&self) -> String {
        self.output_of("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}")
    }
}

#[test]
fn a_deployment_rolls_out_back_pauses_and_restarts() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    kubectl.output_of("apply -f web.yaml");
    kubectl.rolled_out("deployment/web");
    let path = "{.items[0].metadata.managedFields[*].manager}";
    let managers = kubectl.output_of(&format!("get pods --show-managed-fields -o jsonpath={path}"));
    for program in ["kube-controller-manager", "kubelet"] {
        assert!(managers.contains(program), "no field of the pod is {program}'s: {managers}");
    }
    kubectl.output_of("set image deployment web main=nginx:2");
    kubectl.rolled_out("deployment/web");
    let history = kubectl.output_of("rollout history deployment web");
    assert_eq!(
        history.lines().map(|line| line.split(' ').next().unwrap_or_default()).skip(2).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert_eq!(kubectl.output_of("rollout undo deployment web"), "deployment.apps/web rolled back");
    kubectl.rolled_out("deployment/web");
    assert_eq!(kubectl.image(), "nginx:1");
    kubectl.output_of("rollout pause deployment web");
    kubectl.output_of("set image deployment web main=nginx:3");
    kubectl.output_of("scale deployment web --replicas=4");
    kubectl.output_of("wait --for=jsonpath={.status.readyReplicas}=4 deployment/web --timeout=60s");
    let images = kubectl.output_of("get pods -o jsonpath={.items[*].spec.containers[0].image}");
    assert_eq!(images, "nginx:1 nginx:1 nginx:1 nginx:1", "it is paused");
    kubectl.output_of("rollout resume deployment web");
    kubectl.rolled_out("deployment/web");
    let before = kubectl.names("pods");
    kubectl.output_of("rollout restart deployment web");
    kubectl.rolled_out("deployment/web");
    kubectl.output_of("wait --for=jsonpath={.status.terminatingReplicas}=0 deployment/web --timeout=60s");
    let after = kubectl.names("pods");
    assert_eq!(
        (after.len(), after.iter().any(|pod| before.contains(pod))),
        (4, false),
        "{before:?} {after:?}"
    );
}

#[test]
fn deletion_takes_dependents_along_or_leaves_them() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", MANIFEST);
    for (cascade, is_left) in [("background", false), ("foreground", false), ("orphan", true)] {
        kubectl.output_of("apply -f web.yaml");
        kubectl.rolled_out("deployment/web");
        kubectl.output_of(&format!("delete deployment web --cascade={cascade}"));
        if is_left {
            assert_eq!(kubectl.names("replicasets").len(), 1);
            assert_eq!(kubectl.names("pods").len(), 2);
        } else {
            kubectl.output_of("wait --for=delete replicasets,pods --all --timeout=60s");
        }
    }
    kubectl.output_of("create namespace prod");
    kubectl.output_of("-n prod apply -f web.yaml");
    kubectl.output_of("-n prod rollout status deployment/web --timeout=60s");
    kubectl.output_of("delete namespace prod --timeout=60s");
    assert!(kubectl.refuses("get namespace prod").contains("not found"));
}

#[test]
fn a_drained_node_is_left_by_its_pods() {
    let kubectl = Kubectl::new(&["--ephemeral", "--nodes", "3"]);
    kubectl.file("sets.yaml", SETS);
    kubectl.output_of("apply -f sets.yaml");
    kubectl.rolled_out("statefulset/db");
    kubectl.rolled_out("daemonset/agent");
    let node = kubectl.output_of("get pod db-1 -o jsonpath={.spec.nodeName}");
    let drained = kubectl.output_of(&format!("drain {node} --ignore-daemonsets --timeout=60s"));
    assert!(drained.contains("evicting pod default/db-1"), "{drained}");
    kubectl.rolled_out("statefulset/db");
    let other = kubectl.output_of("get pod db-1 -o jsonpath={.spec.nodeName}");
    assert!(other != node && !other.is_empty(), "{node} {other}");
    kubectl.output_of(&format!("uncordon {node}"));
}

#[test]
fn jobs_complete_and_services_have_endpoints() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.output_of("create job good --image=busybox -- true");
    kubectl.output_of("wait --for=condition=Complete job/good --timeout=60s");
    kubectl.output_of("create deployment web --image=nginx --replicas=2 --port=80");
    kubectl.output_of("expose deployment web");
    kubectl.rolled_out("deployment/web");
    kubectl.output_of("wait --for=jsonpath={.subsets[0].addresses[1].ip} endpoints/web --timeout=60s");
    let slices = kubectl.json("get endpointslices -l kubernetes.io/service-name=web");
    assert_eq!(slices["items"][0]["endpoints"].as_array().map(Vec::len), Some(2), "{slices}");
}
