//! The binary called as `kube-apiserver`, with the flags that test environments pass.

mod certificates;
mod environment;
mod keys;

use crate::harness::SETPOINT;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::SelfSubjectReview,
    core::v1::{Namespace, Pod, ServiceAccount},
};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    runtime::wait::await_condition,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
};

/// A running kube-apiserver, ended when it is dropped.
struct ApiServer {
    process: Child,
    url: String,
    /// What it logged before it was ready.
    said: String,
    /// Open as long as it runs; what one test logs fits into the pipe.
    log: BufReader<ChildStderr>,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The binary under the name `kube-apiserver`.
fn program(directory: &Path) -> Command {
    let link = directory.join("kube-apiserver");
    if !link.exists() {
        symlink(SETPOINT, &link).unwrap();
    }
    let mut command = Command::new(link);
    command.env_remove("SETPOINT_CONTROLLERS").env_remove("RUST_LOG");
    command
}

/// Starts it on a free port, and waits until it logs the address.
fn start(directory: &Path, arguments: &[&str]) -> ApiServer {
    start_as(program(directory), directory, arguments)
}

/// As `start`, with an environment.
fn start_as(mut command: Command, directory: &Path, arguments: &[&str]) -> ApiServer {
    command.args(["--secure-port=0", "--v=2", "--service-cluster-ip-range=10.0.0.0/24"]);
    command.arg(format!("--cert-dir={}", directory.join("certificates").display())).args(arguments);
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(process.stderr.take().unwrap());
    let mut server = ApiServer { process, url: String::new(), said: String::new(), log };
    while server.url.is_empty() {
        let mut line = String::new();
        assert_ne!(
            server.log.read_line(&mut line).unwrap(),
            0,
            "it ended before it was ready:\n{}",
            server.said
        );
        if let Some((_, address)) = line.split_once("serving securely address=") {
            server.url = format!("https://{}", address.trim());
        }
        server.said.push_str(&line);
    }
    server
}

/// A CA, and a client certificate of it for the group system:masters, as PEM.
struct Authority {
    ca: String,
    identity: String,
}

impl Authority {
    fn new(user: &str) -> Authority {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("ca of {user}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&ca_key).unwrap().pem();
        let issuer = Issuer::new(params, ca_key);
        let mut client = CertificateParams::default();
        client.distinguished_name.push(DnType::CommonName, user);
        client.distinguished_name.push(DnType::OrganizationName, "system:masters");
        let certificate = client.signed_by(&key, &issuer).unwrap().pem();
        Authority { ca, identity: format!("{certificate}{}", key.serialize_pem()) }
    }
}

/// A client of the server; with an identity in PEM, or a token.
fn client(server: &ApiServer, identity: Option<&str>, token: Option<&str>) -> Client {
    let mut config = Config::new(server.url.parse().unwrap());
    config.accept_invalid_certs = true;
    let pem = identity.map(str::to_owned);
    if let Some(pem) = pem {
        let (certificate, key) = pem.split_at(pem.find("-----BEGIN PRIVATE KEY").unwrap());
        config.auth_info.client_certificate_data = Some(encode(certificate));
        config.auth_info.client_key_data = Some(encode(key).into());
    }
    config.auth_info.token = token.map(|token| token.to_owned().into());
    Client::try_from(config).unwrap()
}

fn encode(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

fn run<F: Future<Output = ()>>(act: F) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(act);
}

async fn user(client: Client) -> Result<String, String> {
    let review: Api<SelfSubjectReview> = Api::all(client);
    let answer = review.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    match answer {
        Ok(review) => Ok(review.status.unwrap().user_info.unwrap().username.unwrap()),
        Err(kube::Error::Api(status)) => Err(format!("{}", status.code)),
        Err(other) => Err(format!("{other:?}")),
    }
}

fn file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    // By a rename, as tools replace certificates.
    let next = directory.join(format!("{name}.next"));
    fs::write(&next, text).unwrap();
    fs::rename(next, &path).unwrap();
    path
}

#[test]
fn users_come_from_certificates_and_tokens_and_anonymous_requests_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let authority = Authority::new("ann");
    let ca = file(scratch.path(), "ca.crt", &authority.ca);
    let tokens = file(scratch.path(), "tokens.csv", "secret,bob,1,\"system:masters\"\n");
    let server = start(
        scratch.path(),
        &[
            &format!("--client-ca-file={}", ca.display()),
            &format!("--token-auth-file={}", tokens.display()),
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
        ],
    );
    run(async {
        assert_eq!(user(client(&server, Some(&authority.identity), None)).await, Ok("ann".to_owned()));
        assert_eq!(user(client(&server, None, Some("secret"))).await, Ok("bob".to_owned()));
        assert_eq!(user(client(&server, None, None)).await, Err("401".to_owned()));
    });
}

#[test]
fn a_changed_client_ca_is_used_without_a_restart() {
    let scratch = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let ca = file(scratch.path(), "ca.crt", &old.ca);
    let server = start(scratch.path(), &[&format!("--client-ca-file={}", ca.display())]);
    run(async {
        assert_eq!(user(client(&server, Some(&old.identity), None)).await, Ok("old".to_owned()));
        assert!(user(client(&server, Some(&new.identity), None)).await.is_err());
        file(scratch.path(), "ca.crt", &new.ca);
        assert_eq!(user(client(&server, Some(&new.identity), None)).await, Ok("new".to_owned()));
        assert!(user(client(&server, Some(&old.identity), None)).await.is_err());
    });
}

#[test]
fn as_in_a_test_environment_there_are_no_accounts_and_no_control_loops() {
    let scratch = tempfile::tempdir().unwrap();
    let tokens = file(scratch.path(), "tokens.csv", "secret,bob,1,\"system:masters\"\n");
    let server = start(
        scratch.path(),
        &[
            &format!("--token-auth-file={}", tokens.display()),
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
        ],
    );
    run(async {
        let client = client(&server, None, Some("secret"));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let pods: Api<Pod> = Api::namespaced(client.clone(), "n");
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "image": "i", "securityContext": {"privileged": true}}]}});
        let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let spec = pod.spec.unwrap();
        assert_eq!((spec.service_account_name, spec.volumes, spec.node_name), (None, None, None));
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "n");
        assert!(accounts.list(&ListParams::default()).await.unwrap().items.is_empty());
    });
}

#[test]
fn pods_run_with_the_control_loops_of_setpoint() {
    let scratch = tempfile::tempdir().unwrap();
    let tokens = file(scratch.path(), "tokens.csv", "secret,bob,1,\"system:masters\"\n");
    let server = start(
        scratch.path(),
        &[
            &format!("--token-auth-file={}", tokens.display()),
            "--disable-admission-plugins=ServiceAccount",
            "--setpoint-controllers=*",
        ],
    );
    run(async {
        let client = client(&server, None, Some("secret"));
        let deployments: Api<Deployment> = Api::namespaced(client, "default");
        let deployment = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        let deployment = serde_json::from_value(deployment).unwrap();
        deployments.create(&PostParams::default(), &deployment).await.unwrap();
        let is_available = |found: Option<&Deployment>| {
            let ready = found.and_then(|found| found.status.as_ref()?.available_replicas);
            ready == Some(2)
        };
        await_condition(deployments, "web", is_available).await.unwrap();
    });
}

#[test]
fn bad_flags_end_it_with_one_line() {
    let scratch = tempfile::tempdir().unwrap();
    for (argument, expected) in [
        ("--insecure-port=0", "setpoint: unknown flag: --insecure-port"),
        (
            "--enable-admission-plugins=Magic",
            "setpoint: enable-admission-plugins plugin \"Magic\" is unknown",
        ),
        ("--authorization-mode=Magic", "setpoint: authorization-mode \"Magic\" is not a valid mode"),
        ("--tls-min-version=Magic", "setpoint: unknown tls version \"Magic\""),
    ] {
        let output = program(scratch.path()).args(["--secure-port=0", argument]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((said.trim(), output.status.code()), (expected, Some(1)));
    }
}

#[test]
fn help_lists_flags_for_test_environments() {
    let scratch = tempfile::tempdir().unwrap();
    let output = program(scratch.path()).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let has = |flag: &str| help.lines().any(|line| line.trim() == flag);
    assert!(has("--allow-privileged") && has("--etcd-servers") && !has("--insecure-port"), "{help}");
    let output = program(scratch.path()).arg("--version").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("Kubernetes v1.36."));
}
