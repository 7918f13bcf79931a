//! Logs of simulated containers, commands in them, and what a node tells of itself.

use super::Kubectl;
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

const PODS: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    setpoint.dev/script: |
      app:
        logs: [one, two, three]
        exec:
          cat /etc/hostname: {stdout: \"web\\n\"}
          check: {stderr: \"no database\\n\", exitCode: 3}
      side: {logs: [beside]}
spec: {containers: [{name: app, image: nginx}, {name: side, image: redis}]}
---
apiVersion: v1
kind: Pod
metadata: {name: crash, annotations: {setpoint.dev/script: 'c: {logs: [oops], exitCode: 1, after: 1s, times: 1}'}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: short}
spec:
  restartPolicy: Never
  containers: [{name: c, image: busybox, command: [sh, -c, echo first; sleep 2; echo second; sleep 1; echo third]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}, annotations: {setpoint.dev/script: '{c: {logs: [served]}}'}}
    spec: {containers: [{name: c, image: nginx}]}
";

fn started() -> Kubectl {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("pods.yaml", PODS);
    kubectl.output_of("apply -f pods.yaml");
    kubectl.output_of("wait --for=condition=Ready pod/web --timeout=60s");
    kubectl.output_of("rollout status deployment/api --timeout=60s");
    kubectl
}

#[test]
fn logs_of_simulated_containers() {
    let kubectl = started();
    // Before anything else: it ends after three seconds.
    let mut command = kubectl.command("logs -f short --pod-running-timeout=20s");
    let mut follow = command.stdout(Stdio::piped()).spawn().unwrap();
    for (line, expected) in [
        ("logs web -c app", "one\ntwo\nthree"),
        ("logs web app --tail=1", "three"),
        ("logs web app --limit-bytes=5", "one\nt"),
        ("logs web -c side", "beside"),
        ("logs deployment/api", "served"),
        ("logs -l app=api --tail=-1", "served"),
        ("logs web app --since=1h --tail=2", "two\nthree"),
    ] {
        assert_eq!(kubectl.output_of(line), expected, "kubectl {line}");
    }
    // kubectl asks for the containers in any order.
    let all = kubectl.output_of("logs web --all-containers --prefix");
    let mut all: Vec<&str> = all.lines().collect();
    all.sort_by_key(|line| line.starts_with("[pod/web/side]"));
    let expected = ["[pod/web/app] one", "[pod/web/app] two", "[pod/web/app] three", "[pod/web/side] beside"];
    assert_eq!(all, expected);
    let stamped = kubectl.output_of("logs web app --timestamps --tail=1");
    assert!(stamped.starts_with("20") && stamped.ends_with("Z three"), "{stamped}");
    let mut followed = String::new();
    follow.stdout.take().unwrap().read_to_string(&mut followed).unwrap();
    assert_eq!(followed, "first\nsecond\nthird\n");
    assert!(follow.wait().unwrap().success(), "it ends when the container ends");
    kubectl.output_of(
        "wait --for=jsonpath={.status.containerStatuses[0].restartCount}=1 pod/crash --timeout=60s",
    );
    assert_eq!(kubectl.output_of("logs crash --previous"), "oops");
    for (line, expected) in [
        ("logs web app --previous", "previous terminated container \"app\" in pod \"web\" not found"),
        ("logs web -c none", "container none is not valid for pod web"),
        ("logs none", "pods \"none\" not found"),
    ] {
        let refused = kubectl.refuses(line);
        assert!(refused.contains(expected), "kubectl {line}: {refused}");
    }
}

#[test]
fn a_container_that_waits_has_no_log() {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: late, annotations: {setpoint.dev/script: 'c: \
               {startAfter: 1h}'}}\nspec: {containers: [{name: c, image: nginx}]}\n";
    kubectl.file("late.yaml", pod);
    kubectl.output_of("apply -f late.yaml");
    kubectl.output_of("wait --for=condition=PodScheduled pod/late --timeout=60s");
    kubectl.output_of("wait --for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ContainerCreating pod/late --timeout=60s");
    let refused = kubectl.refuses("logs late");
    let expected = "container \"c\" in pod \"late\" is waiting to start: ContainerCreating";
    assert!(refused.contains(expected), "{refused}");
    let refused = kubectl.refuses("exec late -- true");
    assert!(refused.contains("container not found (\"c\")"), "{refused}");
}

#[test]
fn commands_in_simulated_containers() {
    let kubectl = started();
    assert_eq!(kubectl.output_of("exec web -c app -- cat /etc/hostname"), "web");
    assert_eq!(kubectl.output_of("exec deployment/api -- echo hi"), "hi");
    for (words, code, stdout, stderr) in [
        (&["check"][..], 3, "", "no database\n"),
        (&["sh", "-c", "echo hi; exit 7"], 7, "hi\n", ""),
        (
            &["psql", "-c", "select 1"],
            127,
            "",
            "psql: no container runs on a simulated node: add the command to",
        ),
        (&["false"], 1, "", ""),
    ] {
        let output = kubectl.command("exec web -c app --").args(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with(stderr), "{words:?}: {said}");
        assert!(said.contains(&format!("command terminated with exit code {code}")), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    }
    for (line, input, expected) in [
        ("exec -i web -c app -- cat", "a line\nand another\n", "a line\nand another\n"),
        ("exec -i web -c app -- sh", "echo one\ncat /etc/hostname\n", "one\nweb\n"),
    ] {
        let mut command = kubectl.command(line);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "kubectl {line}");
        assert!(output.status.success(), "kubectl {line}");
    }
}

#[test]
fn attach_and_pages_of_a_node() {
    let kubectl = started();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: clock}\nspec: {restartPolicy: Never, containers: [{name: \
               c, image: x, command: [sh, -c, echo a; sleep 10; echo b; sleep 1; exit 0]}]}\n";
    kubectl.file("clock.yaml", pod);
    kubectl.output_of("apply -f clock.yaml");
    kubectl.output_of("wait --for=jsonpath={.status.phase}=Running pod/clock --timeout=60s");
    let mut command = kubectl.command("attach clock");
    let mut attach = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> =
        BufReader::new(attach.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    assert_eq!(lines.last().map(String::as_str), Some("b"), "{lines:?}");
    assert!(attach.wait().unwrap().success());
    for (page, expected) in [
        ("healthz", "ok"),
        ("metrics", "kubelet_running_pods "),
        ("pods", "\"name\":\"web\""),
        ("stats/summary", "\"nodeName\":\"node-0\""),
        ("configz", "kubeletconfig"),
    ] {
        let said = kubectl.output_of(&format!("get --raw /api/v1/nodes/node-0/proxy/{page}"));
        assert!(said.contains(expected), "{page}: {said}");
    }
    let node = kubectl.json("get node node-0");
    let address = &node["status"]["addresses"][1];
    assert_eq!((&address["type"], &address["address"]), (&"Hostname".into(), &"127.0.0.1".into()), "{node}");
}
