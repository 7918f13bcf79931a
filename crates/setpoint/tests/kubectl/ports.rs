//! Ports of simulated containers: what kubectl forwards, and what the server's proxy reaches.

use super::Kubectl;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
};

const WEB: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {setpoint.dev/script: 'app: {http: {80: hello}}'}}
spec: {containers: [{name: app, image: nginx}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080, targetPort: 80}]}
";

/// A running `kubectl port-forward`, and the local address that it has printed.
struct Forwarding {
    program: Child,
    local: String,
}

impl Forwarding {
    fn start(kubectl: &Kubectl, line: &str, over_web_socket: bool) -> Forwarding {
        let mut command = kubectl.command(line);
        command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", over_web_socket.to_string());
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        // "Forwarding from 127.0.0.1:40123 -> 80"
        let local = first.split(' ').nth(2).unwrap_or_default().to_owned();
        Forwarding { program, local }
    }

    fn page(&self) -> String {
        let mut socket = TcpStream::connect(&self.local).unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        socket.read_to_string(&mut page).unwrap();
        page
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.program.kill().ok();
        self.program.wait().ok();
    }
}

fn started() -> Kubectl {
    let kubectl = Kubectl::new(&["--ephemeral"]);
    kubectl.file("web.yaml", WEB);
    kubectl.output_of("apply -f web.yaml");
    kubectl.output_of("wait --for=condition=Ready pod/web --timeout=60s");
    kubectl
}

#[test]
fn a_port_is_forwarded_over_web_sockets_and_over_spdy() {
    let kubectl = started();
    for over_web_socket in [true, false] {
        let forwarding = Forwarding::start(&kubectl, "port-forward pod/web :80", over_web_socket);
        for _ in 0..2 {
            let page = forwarding.page();
            assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("hello"), "{page}");
        }
    }
}

#[test]
fn a_port_on_which_nothing_listens_is_closed_with_the_error_of_the_kubelet() {
    let kubectl = started();
    let mut forwarding = Forwarding::start(&kubectl, "port-forward pod/web :81", true);
    let mut socket = TcpStream::connect(&forwarding.local).unwrap();
    socket.write_all(b"x").unwrap();
    drop(socket.read(&mut [0; 1]));
    let mut said = BufReader::new(forwarding.program.stderr.as_mut().unwrap()).lines();
    let error = said.find_map(|line| line.ok().filter(|line| line.contains("error occurred forwarding")));
    let error = error.unwrap();
    assert!(error.contains("81"), "{error}");
}

#[test]
fn the_proxy_of_the_server_reaches_pods_and_services() {
    let kubectl = started();
    kubectl.output_of(
        "wait --for=jsonpath={.endpoints[0].conditions.ready}=true endpointslices -l \
                       kubernetes.io/service-name=web --timeout=60s",
    );
    for path in ["pods/web:80/proxy/", "services/web:8080/proxy/"] {
        let page = kubectl.output_of(&format!("get --raw /api/v1/namespaces/default/{path}"));
        assert_eq!(page, "hello", "{path}");
    }
    let refused = kubectl.refuses("get --raw /api/v1/namespaces/default/pods/web:81/proxy/");
    assert!(refused.contains("error trying to reach service"), "{refused}");
}
