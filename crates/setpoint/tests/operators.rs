//! The operator framework over TLS against `setpoint up`, also as separate processes that get killed.

use crate::harness::Up;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, World, all,
    lease::{Election, Timing},
    webhook::{Address, Certificates, Hook, Request, Site, Webhooks},
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Turns this test program into the process of a manager.
const ROLE: &str = "SETPOINT_TEST_MANAGER";
/// The usual leader election, only faster.
const TIMING: Timing = Timing {
    lease: Duration::from_secs(3),
    renew_deadline: Duration::from_secs(2),
    retry: Duration::from_millis(250),
};
/// Long enough for the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Signs every ConfigMap that requests it.
pub(crate) fn signer(name: &str) -> Controller {
    Controller::new("signer", all::<ConfigMap>().labelled("sign=please")).reconcile(name.to_owned(), sign)
}

async fn sign(context: Context<String>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
    if !map.annotations().contains_key("signed-by") {
        let patch = json!({"metadata": {"annotations": {"signed-by": context.state()}}});
        let maps = context.namespaced::<ConfigMap>(&key);
        maps.patch(key.name(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    Ok(Next::Settled)
}

pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn manager(world: &World, client: Client, name: &str) -> Manager {
    Manager::new("signer", world, client).elect(election(world, name)).controller(signer(name))
}

fn election(world: &World, name: &str) -> Election {
    Election::new(world, "default", "signer").identity(name).timing(TIMING)
}

pub(crate) fn in_a_runtime<F: Future>(act: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(act)
}

pub(crate) async fn ask_for_signature(client: &Client, name: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let map = json!({"metadata": {"name": name, "labels": {"sign": "please"}}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
}

pub(crate) async fn signature(client: &Client, name: &str) -> String {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    until("it is signed", async || maps.get(name).await.unwrap().annotations().get("signed-by").cloned())
        .await
}

/// Polls until `look` returns something.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let world = World::real();
    let begun = world.now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(world.now().since(begun) < PATIENCE, "waited for long: {what}");
        world.sleep(Duration::from_millis(20)).await;
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The response of a plain HTTP server.
fn ask(address: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: probes\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// A manager in a separate process.
struct Process(Child);

impl Process {
    fn start(name: &str, kubeconfig: &Path) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "operators::a_manager_works_over_tls_and_stops_cleanly"]);
        command.env(ROLE, name).env("KUBECONFIG", kubeconfig).stdout(Stdio::null());
        Process(command.spawn().unwrap())
    }

    /// SIGKILL: the process cannot react.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
    }
}

#[test]
fn a_manager_works_over_tls_and_stops_cleanly() {
    if let Ok(name) = std::env::var(ROLE) {
        // This process was started by the other test: it works until it is killed.
        in_a_runtime(async {
            // The cluster of KUBECONFIG, as in the `main` of an operator.
            let manager = Manager::connect("signer").await.unwrap();
            manager.elect(election(&World::real(), &name)).controller(signer(&name)).run().await.unwrap();
        });
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    in_a_runtime(async {
        let client = client(&up.kubeconfig).await;
        let probes = free_address();
        let running = manager(&World::real(), client.clone(), "here").probes(probes).start();
        for name in ["one", "two", "three"] {
            ask_for_signature(&client, name).await;
            assert_eq!(signature(&client, name).await, "here");
        }
        assert!(
            ask(probes, "/readyz?verbose").contains("[+]cache-of-ConfigMap ok"),
            "{}",
            ask(probes, "/readyz")
        );
        assert!(ask(probes, "/healthz").ends_with("ok"));
        let page = ask(probes, "/metrics");
        for series in [
            r#"controller_runtime_reconcile_total{controller="signer",result="success"}"#,
            r#"leader_election_master_status{name="signer"} 1"#,
            r#"rest_client_requests_total{code="200",host="",method="PATCH"}"#,
        ] {
            assert!(page.contains(series), "{series} is not in\n{page}");
        }
        running.stop().await.unwrap();
        let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
        let lease = leases.get("signer").await.unwrap();
        assert_eq!(lease.spec.and_then(|spec| spec.holder_identity), None, "it was given back");
        ask_for_signature(&client, "four").await;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        assert!(!maps.get("four").await.unwrap().annotations().contains_key("signed-by"));
    });
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn when_the_leader_is_killed_the_other_process_takes_over() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    in_a_runtime(async {
        let client = client(&up.kubeconfig).await;
        let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
        let holder = async || leases.get_opt("signer").await.unwrap()?.spec?.holder_identity;

        let first = Process::start("first", &up.kubeconfig);
        assert_eq!(until("the first leads", holder).await, "first");
        let second = Process::start("second", &up.kubeconfig);
        ask_for_signature(&client, "before").await;
        assert_eq!(signature(&client, "before").await, "first");

        first.kill();
        ask_for_signature(&client, "after").await;
        assert_eq!(signature(&client, "after").await, "second");
        assert_eq!(signature(&client, "before").await, "first", "finished work is not repeated");
        let spec = leases.get("signer").await.unwrap().spec.unwrap();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("second"), Some(1)));
        second.kill();
    });
    assert_eq!(up.stop(), Some(0));
}

/// Marks every ConfigMap.
fn marker() -> Webhooks {
    Webhooks::new("marker").hook(Hook::defaulter(|map: &mut ConfigMap, _: &Request| {
        map.metadata.labels.get_or_insert_default().insert("marked".to_owned(), "yes".to_owned());
    }))
}

#[test]
fn a_manager_that_is_dropped_closes_the_connections_to_its_webhooks_and_probes() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    in_a_runtime(async {
        let client = client(&up.kubeconfig).await;
        let (hooks, probes) = (free_address(), free_address());
        let certificates =
            Certificates::Shared { namespace: "default".to_owned(), secret: "marker".to_owned() };
        let site = Site { address: Address::Url(format!("https://{hooks}")), certificates };
        let manager = Manager::new("marker", &World::real(), client.clone());
        let running = manager.webhooks(marker(), hooks, site).probes(probes).start();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        let create = async |name: &str| {
            let map = json!({"metadata": {"name": name}});
            maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await
        };
        let mut names = (0..).map(|number| format!("map-{number}"));
        // From here on the API server has a connection to the webhooks, which it keeps.
        until("the webhooks are called", async || {
            let made = create(&names.next().unwrap()).await.ok()?;
            made.labels().contains_key("marked").then_some(())
        })
        .await;
        let mut waiting = until("the probes listen", async || TcpStream::connect(probes).ok()).await;
        write!(waiting, "GET /healthz HTTP/1.1\r\n").unwrap();

        drop(running);
        let refused =
            until("the webhooks are gone", async || create(&names.next().unwrap()).await.err()).await;
        assert!(refused.to_string().contains("failed calling webhook"), "{refused}");
        let mut answer = String::new();
        // Whether it is closed or reset depends on what was read of the request.
        drop(waiting.read_to_string(&mut answer));
        assert_eq!(answer, "", "the connection is closed without a response");
    });
    assert_eq!(up.stop(), Some(0));
}
