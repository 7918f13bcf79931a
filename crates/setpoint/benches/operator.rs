//! How fast the operator framework is, beside kube-rs's own runtime and controller-runtime in the same run on
//! the same server.
//!
//! `cargo xtask bench operator` runs it, and names the program that measures controller-runtime (which is
//! `interop/peer`) in `SETPOINT_PEER`. The server is `setpoint up` over TLS. Every measurement is taken in
//! a process of its own, so that its memory is its own, and the contestants take turns. A missed goal fails it.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[path = "../src/bench"]
mod bench {
    pub(crate) mod own_server;
}
#[path = "operator/contestants.rs"]
mod contestants;
#[path = "../../store/benches/store/goals.rs"]
mod goals;
#[path = "server/process.rs"]
mod process;

use bench::own_server::OwnServer;
use contestants::Contestant;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
    core::ObjectMeta,
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
};
use world::World;

const SETPOINT: &str = env!("CARGO_BIN_EXE_setpoint");
/// Small objects in the cluster; an argument sets another number.
const OBJECTS: usize = 100_000;
const WRITERS: usize = 64;
const ROUNDS: usize = 3;
/// Starts this program again for one measurement.
const CHILD: &str = "--measure";
/// The environment variable with the program that measures controller-runtime.
const PEER: &str = "SETPOINT_PEER";

/// The measurements of one process.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// From the first request until everything is in the cache.
    sync_seconds: f64,
    sync_processor_seconds: f64,
    /// The memory that the cache added to the process, per object.
    bytes_per_object: f64,
    /// From the first reconcile to the last, when an empty reconciler gets every object once.
    reconciles_per_second: f64,
    /// From sending a write until the reconciler is called for it.
    latency_p50: f64,
    latency_p99: f64,
}

type Verdicts = Vec<(&'static str, String, bool)>;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = world::run(|world| async move {
        match arguments[..] {
            [CHILD, contestant, kubeconfig, objects] => {
                let client = client(Path::new(kubeconfig)).await;
                let contestant = Contestant::named(contestant).unwrap();
                let figures =
                    contestants::measure(&world, client, contestant, objects.parse().unwrap()).await;
                println!("{}", figures.line());
                ExitCode::SUCCESS
            }
            _ => {
                let objects = arguments.iter().find_map(|argument| argument.parse().ok());
                run(&world, objects.unwrap_or(OBJECTS)).await
            }
        }
    });
    outcome.unwrap()
}

impl Figures {
    fn line(&self) -> String {
        let numbers = self.numbers().map(|number| number.to_string());
        numbers.join(" ")
    }

    fn numbers(&self) -> [f64; 6] {
        [
            self.sync_seconds,
            self.sync_processor_seconds,
            self.bytes_per_object,
            self.reconciles_per_second,
            self.latency_p50,
            self.latency_p99,
        ]
    }

    fn of([sync_seconds, sync_processor_seconds, bytes_per_object, rate, p50, p99]: [f64; 6]) -> Figures {
        Figures {
            sync_seconds,
            sync_processor_seconds,
            bytes_per_object,
            reconciles_per_second: rate,
            latency_p50: p50,
            latency_p99: p99,
        }
    }

    fn read(line: &str) -> Figures {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        Figures::of(numbers.try_into().unwrap())
    }

    /// Number by number.
    fn median(rounds: &[Figures]) -> Figures {
        Figures::of(std::array::from_fn(|at| {
            let mut numbers: Vec<f64> = rounds.iter().map(|figures| figures.numbers()[at]).collect();
            numbers.sort_by(f64::total_cmp);
            numbers[numbers.len() / 2]
        }))
    }
}

async fn run(world: &World, objects: usize) -> ExitCode {
    let (server, _) = OwnServer::start(world, Path::new(SETPOINT), &[]).await.unwrap();
    let begin = world.now();
    fill(&client(&server.kubeconfig).await, objects).await;
    println!("{objects} config maps, written in {:.1} s", world.now().since(begin).as_secs_f64());
    let peer = std::env::var_os(PEER);
    if peer.is_none() {
        println!("controller-runtime is not measured: {PEER} does not name its program");
    }
    let contestants = Contestant::all(peer.is_some());
    let mut rounds = vec![Vec::new(); contestants.len()];
    for _ in 0..ROUNDS {
        for (contestant, figures) in contestants.iter().zip(&mut rounds) {
            let mut child = child(*contestant, peer.as_ref());
            child.arg(&server.kubeconfig).arg(objects.to_string());
            let output = world.blocking(move || child.output().unwrap()).await;
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            figures.push(Figures::read(said.lines().last().unwrap()));
        }
    }
    let medians = rounds.iter().map(|figures| Figures::median(figures));
    report(&contestants.into_iter().zip(medians).collect::<Vec<_>>())
}

/// The process for one measurement; its last arguments are the kubeconfig and the number of objects.
fn child(contestant: Contestant, peer: Option<&OsString>) -> Command {
    match (contestant, peer) {
        (Contestant::ControllerRuntime, Some(peer)) => Command::new(peer),
        _ => {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args([CHILD, contestant.name()]);
            child
        }
    }
}

fn report(figures: &[(Contestant, Figures)]) -> ExitCode {
    println!("\nmedian of {ROUNDS} rounds, one contestant after the other");
    println!(
        "{:>28} {:>10} {:>10} {:>12} {:>14} {:>10} {:>10}",
        "", "sync s", "of a cpu s", "bytes each", "reconciles/s", "p50 ms", "p99 ms"
    );
    for (contestant, figures) in figures {
        let Figures { sync_seconds, sync_processor_seconds, bytes_per_object, .. } = figures;
        let Figures { reconciles_per_second, latency_p50, latency_p99, .. } = figures;
        println!(
            "{:>28} {sync_seconds:>10.2} {sync_processor_seconds:>10.2} {bytes_per_object:>12.0} \
             {reconciles_per_second:>14.0} {latency_p50:>10.2} {latency_p99:>10.2}",
            contestant.name()
        );
    }
    goals::report(&verdicts(figures))
}

/// The better of the two kube-rs lines counts, number by number.
fn verdicts(figures: &[(Contestant, Figures)]) -> Verdicts {
    let of = |contestant| figures.iter().find(|(other, _)| *other == contestant).map(|(_, figures)| *figures);
    let own = of(Contestant::Framework).unwrap();
    let others = [Contestant::KubeRs, Contestant::KubeRsStreaming].map(|other| of(other).unwrap());
    let least = |of: fn(&Figures) -> f64| others.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Figures) -> f64| others.iter().map(of).fold(0.0, f64::max);
    let mut verdicts = Verdicts::new();
    let mut goal =
        |text, ratio: f64, wanted: f64| verdicts.push((text, format!("{ratio:.2}"), ratio >= wanted));
    goal("initial sync: faster than kube-rs", least(|it| it.sync_seconds) / own.sync_seconds, 1.0);
    let work = least(|it| it.sync_processor_seconds) / own.sync_processor_seconds;
    goal("processor time of it: less than kube-rs", work, 1.0);
    goal("memory: half of kube-rs", least(|it| it.bytes_per_object) / own.bytes_per_object, 2.0);
    let rate = most(|it| it.reconciles_per_second);
    goal("reconciles a second: twice kube-rs", own.reconciles_per_second / rate, 2.0);
    goal("write to reconcile, p50: ahead of kube-rs", least(|it| it.latency_p50) / own.latency_p50, 1.0);
    goal("write to reconcile, p99: ahead of kube-rs", least(|it| it.latency_p99) / own.latency_p99, 1.0);
    if let Some(peer) = of(Contestant::ControllerRuntime) {
        goal("initial sync: faster than controller-runtime", peer.sync_seconds / own.sync_seconds, 1.0);
        let work = peer.sync_processor_seconds / own.sync_processor_seconds;
        goal("processor time of it: less than controller-runtime", work, 1.0);
        goal("memory: less than controller-runtime", peer.bytes_per_object / own.bytes_per_object, 1.0);
        let rate = own.reconciles_per_second / peer.reconciles_per_second;
        goal("reconciles a second: more than controller-runtime", rate, 1.0);
        goal("write to reconcile, p50: ahead of controller-runtime", peer.latency_p50 / own.latency_p50, 1.0);
        goal("write to reconcile, p99: ahead of controller-runtime", peer.latency_p99 / own.latency_p99, 1.0);
    }
    let (bytes, rate) = (own.bytes_per_object, own.reconciles_per_second);
    verdicts.push(("memory for each small object: at most 2 KB", format!("{bytes:.0}"), bytes <= 2048.0));
    verdicts.push(("reconciles a second: at least 200,000", format!("{rate:.0}"), rate >= 200_000.0));
    verdicts
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn fill(client: &Client, objects: usize) {
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let configs = &configs;
    let writers = (0..WRITERS).map(|writer| async move {
        for number in (writer..objects).step_by(WRITERS) {
            configs.create(&PostParams::default(), &object(number)).await?;
        }
        Ok::<_, kube::Error>(())
    });
    try_join_all(writers).await.unwrap();
}

fn object(number: usize) -> ConfigMap {
    let labels = [("app", format!("app-{}", number % 100)), ("tier", "bench".to_owned())];
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name(number)),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), number.to_string())])),
        ..ConfigMap::default()
    }
}

fn name(number: usize) -> String {
    format!("object-{number:06}")
}
