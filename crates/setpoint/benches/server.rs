//! The speed of the API server, next to a bare hyper + rustls server and the bare disk in the same run.
//!
//! `cargo xtask bench server` runs it. The servers are separate processes, the load comes from this one, and
//! both get it in turns. Next to the rates is the processor time per request, which hardly depends on other
//! load of the machine.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[path = "server/applies.rs"]
mod applies;
#[path = "server/bare.rs"]
mod bare;
#[path = "../../store/benches/store/bare_file.rs"]
mod bare_file;
#[expect(dead_code, unused_imports, reason = "only the command and its tests use the rest")]
#[path = "../src/bench"]
mod bench {
    pub(crate) mod client;
    pub(crate) mod fan_out;
    pub(crate) mod kubeconfig;
    pub(crate) mod latency;
    pub(crate) mod measure;
    pub(crate) mod operation;
    pub(crate) mod own_server;
    pub(crate) mod place;
    mod trust;
}
#[path = "../../store/benches/store/goals.rs"]
mod goals;
#[path = "server/process.rs"]
mod process;

use bare_file::BareFile;
use bench::{
    client::Client,
    fan_out::{WatchForm, Watchers, fan_out},
    kubeconfig::Target,
    measure::{Load, Measured, measure},
    operation::Operation,
    own_server::OwnServer,
    place::{OBJECT_BYTES, Place},
};
use http::Method;
use process::{busy, resident};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};
use world::World;

const SETPOINT: &str = env!("CARGO_BIN_EXE_setpoint");
/// Rounds of each measurement, taken in turns by the servers; the median counts.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(700);
const STARTS: usize = 7;
const READERS: usize = 8;
const WRITERS: usize = 64;
const WATCHERS: usize = 1000;
const IDLE: Duration = Duration::from_secs(5);
/// Counts as no processor time: a thousandth of one processor.
const NOTHING: Duration = Duration::from_millis(5);
/// Objects stored to measure the memory of each.
const STORED: u64 = 20_000;
/// Start this program again as the bare server, and as a process that has a control plane inside.
const BARE: &str = "--bare";
const IN_PROCESS: &str = "--in-process";

/// Requests are measured without control loops and nodes, which would answer every write with more writes.
const SERVER_ALONE: [&str; 3] = ["--controllers=", "--nodes", "0"];

type Verdicts = Vec<(&'static str, String, bool)>;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = world::run(|world| async move {
        match arguments[..] {
            [BARE, folder, object, list] => {
                let (object, list) = (object.parse().unwrap(), list.parse().unwrap());
                bare::serve(&world, Path::new(folder), object, list).await
            }
            [IN_PROCESS] => in_process(&world).await,
            // Cargo passes `--bench` to every benchmark.
            [ref only @ .., "--bench"] | ref only => run(&world, only).await,
        }
    });
    outcome.unwrap()
}

/// Measures everything, or only the parts that are named: `starts`, `get`, `list`, `create`, `apply`, `watch`, `memory`.
async fn run(world: &World, only: &[&str]) -> ExitCode {
    let is_wanted = |part: &str| only.is_empty() || only.contains(&part);
    let mut verdicts = Verdicts::new();
    if is_wanted("starts") {
        starts(world, &mut verdicts).await;
    }
    let server = OwnServer::start(world, Path::new(SETPOINT), &SERVER_ALONE).await.unwrap().0;
    let process = server.process.id();
    let place = Arc::new(Place::new(world, Target::read(&server.kubeconfig).unwrap(), 1000));
    place.prepare(world).await.unwrap();
    beside_bare(world, &server, &place, is_wanted, &mut verdicts).await;
    if is_wanted("apply") {
        applies::applies(world, process, &place).await;
    }
    if is_wanted("watch") {
        watches(world, process, &place, &mut verdicts).await;
    }
    if is_wanted("memory") {
        let fresh = OwnServer::start(world, Path::new(SETPOINT), &SERVER_ALONE).await.unwrap().0;
        memory_of_objects(world, &fresh, &mut verdicts).await;
    }
    goals::report(&verdicts)
}

/// The folder with its data, certificates and kubeconfig.
fn folder(server: &OwnServer) -> &Path {
    server.kubeconfig.parent().unwrap()
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

// ---------------------------------------------------------------------------------------- starts

/// Starts it several times, with everything on; the last one is idle then.
async fn starts(world: &World, verdicts: &mut Verdicts) {
    println!("starts (median of {STARTS})");
    let [mut cold, mut work, mut inside, mut inside_work] = [const { Vec::new() }; 4];
    let mut last = None;
    for _ in 0..STARTS {
        drop(last.take());
        let (server, took) = OwnServer::start(world, Path::new(SETPOINT), &[]).await.unwrap();
        cold.push(took.as_secs_f64() * 1e3);
        work.push(busy(server.process.id()).as_secs_f64() * 1e3);
        last = Some(server);
        let again = Command::new(std::env::current_exe().unwrap()).arg(IN_PROCESS).output().unwrap();
        let said = String::from_utf8(again.stdout).unwrap();
        let (took, spent) = said.trim().split_once(' ').unwrap();
        inside.push(took.parse().unwrap());
        inside_work.push(spent.parse().unwrap());
    }
    let server = last.unwrap();
    let memory = resident(server.process.id()) as f64 / 1e6;
    let [cold, work, inside, inside_work] = [cold, work, inside, inside_work].map(median);
    println!("  setpoint up: {cold:.0} ms to ready, {work:.0} ms of a processor, {memory:.1} MB when idle");
    println!("  in a process, on the memory store: {inside:.1} ms, {inside_work:.1} ms of a processor");
    verdicts.push(("up to ready, cold: at most 100 ms", format!("{cold:.0}"), cold <= 100.0));
    verdicts.push((
        "up to ready, in process on the memory store: at most 10 ms",
        format!("{inside:.1}"),
        inside <= 10.0,
    ));
    verdicts.push(("memory when idle: at most 40 MB", format!("{memory:.1}"), memory <= 40.0));
}

/// The other process of [`starts`]: prints how many milliseconds, and how many of processor time, a control
/// plane takes to start inside a test.
async fn in_process(world: &World) -> ExitCode {
    let (begin, before) = (world.now(), busy(std::process::id()));
    let store = Arc::new(store::Memory::new());
    let server = server::Server::start(world, store, server::Config::default()).await;
    let (took, spent) = (world.now().since(begin), busy(std::process::id()).saturating_sub(before));
    println!("{} {}", took.as_secs_f64() * 1e3, spent.as_secs_f64() * 1e3);
    drop(server.unwrap());
    ExitCode::SUCCESS
}

// ----------------------------------------------------------------------------------- beside bare

/// The bare server, stopped when this is dropped.
struct Bare {
    process: Child,
    place: Arc<Place>,
}

impl Bare {
    async fn start(world: &World, server: &OwnServer, place: &Place) -> Bare {
        let mut client = Client::connect(world, &place.target).await.unwrap();
        let mut length = async |name: &str| {
            let request = place.request(Method::GET, &place.path(name), "");
            client.send(request).await.unwrap().length.to_string()
        };
        let (object, list) = (length("object-0000").await, length("").await);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(BARE).arg(folder(server)).args([object, list]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("ready ").unwrap();
        let kubeconfig = std::fs::read_to_string(&server.kubeconfig).unwrap();
        let url = format!("https://127.0.0.1:{port}");
        let path = folder(server).join("bare-kubeconfig");
        std::fs::write(&path, kubeconfig.replace(&place.target.url, &url)).unwrap();
        let mut own = Place::new(world, Target::read(&path).unwrap(), place.objects);
        own.namespace.clone_from(&place.namespace);
        Bare { process, place: Arc::new(own) }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Requests a second, and microseconds of a processor for each.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    work: Vec<f64>,
}

impl Side {
    async fn round(&mut self, world: &World, process: u32, place: &Arc<Place>, load: &Load) -> Measured {
        let before = busy(process);
        let measured = measure(world, place, load).await.unwrap();
        assert_eq!(measured.errors, 0, "{:?}", measured.complaint);
        let spent = busy(process).saturating_sub(before).as_secs_f64() * 1e6;
        self.rates.push(measured.per_second());
        self.work.push(spent / measured.latencies.count as f64);
        measured
    }
}

async fn beside_bare(
    world: &World,
    server: &OwnServer,
    place: &Arc<Place>,
    is_wanted: impl Fn(&str) -> bool,
    verdicts: &mut Verdicts,
) {
    let bare = Bare::start(world, server, place).await;
    println!(
        "\nrequests a second (median of {ROUNDS} rounds, one after the other), and processor time for each"
    );
    println!("{:>18} {:>22} {:>22} {:>8}", "", "bare hyper + rustls", "setpoint", "ratio");
    for (operation, clients, goal) in [
        (Operation::Get, READERS, Some(("GET over TLS: at least 0.60 of a bare server", 0.6))),
        (Operation::Get, WRITERS, None),
        (Operation::List, READERS, Some(("LIST of 1,000 x 1 KiB: at least 0.50 of a bare server", 0.5))),
        (Operation::Create, WRITERS, None),
    ] {
        if !is_wanted(operation.name()) {
            continue;
        }
        let (mut other, mut own, mut disk) = (Side::default(), Side::default(), Vec::new());
        for round in 0..ROUNDS {
            let load = Load { operation, clients, span: ROUND, edition: round as u64, most: None };
            other.round(world, bare.process.id(), &bare.place, &load).await;
            let measured = own.round(world, server.process.id(), place, &load).await;
            if operation == Operation::Create {
                let most = Some(measured.done);
                let delete = Load { operation: Operation::Delete, most, ..load };
                measure(world, place, &delete).await.unwrap();
                place.clear(world).await.unwrap();
                disk.push(appends(world, folder(server)).await);
            }
        }
        let [other_rate, own_rate] = [other.rates, own.rates].map(median);
        let [other_work, own_work] = [other.work, own.work].map(median);
        let ratio = own_rate / other_rate;
        println!(
            "{:>18} {other_rate:>12.0} ({other_work:>4.0} µs) {own_rate:>12.0} ({own_work:>4.0} µs) {ratio:>8.2}",
            format!("{} x {clients}", operation.name())
        );
        if let Some((goal, least)) = goal {
            verdicts.push((goal, format!("{ratio:.2}"), ratio >= least));
        }
        if operation == Operation::Create {
            let disk = median(disk);
            println!("{:>18} {disk:>12.0} {:>32.2}", "(without network)", own_rate / disk);
            verdicts.push((
                "durable creates, 64 clients: at least 0.50 of batched appends",
                format!("{:.2}", own_rate / disk),
                own_rate / disk >= 0.5,
            ));
            verdicts.push((
                "the same beside a bare server that appends what it gets",
                format!("{ratio:.2}"),
                ratio >= 0.5,
            ));
        }
    }
}

/// The rate of the disk alone for as many writers.
async fn appends(world: &World, folder: &Path) -> f64 {
    let file = BareFile::open(world, &folder.join("appends")).unwrap();
    let start = world.now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (world_, file) = (world.clone(), file.clone());
            world.spawn("writer", async move {
                let record = bytes::Bytes::from(vec![7; OBJECT_BYTES]);
                let mut done = 0_u64;
                while world_.now() < start + ROUND {
                    file.append(record.clone()).await.unwrap();
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for writer in writers {
        done += writer.await.unwrap();
    }
    done as f64 / world.now().since(start).as_secs_f64()
}

// --------------------------------------------------------------------------------------- watches

/// By labels and fields; they match everything.
const SELECTORS: &str = "&labelSelector=%21absent&fieldSelector=metadata.name%21%3Dabsent";

async fn watches(world: &World, process: u32, place: &Place, verdicts: &mut Verdicts) {
    println!("\none write to {WATCHERS} watchers, from sending it until the last has it");
    let selected = |accept| WatchForm { query: SELECTORS, accept };
    for (form, about, goal) in [
        (
            WatchForm::default(),
            "of everything, as JSON",
            "one write to 1,000 watchers: all within 20 ms (p50)",
        ),
        (selected("application/json"), "with selectors, as JSON", "the same with selectors, as JSON"),
        (
            selected("application/vnd.kubernetes.protobuf"),
            "with selectors, as protobuf",
            "the same with selectors, as protobuf",
        ),
        (
            selected("application/json;as=Table;v=v1;g=meta.k8s.io"),
            "with selectors, as Table",
            "the same with selectors, as Table",
        ),
    ] {
        let before = busy(process);
        let latencies = fan_out(world, place, WATCHERS, form, ROUND * 3).await.unwrap();
        let spent = busy(process).saturating_sub(before).div_f64(latencies.count.max(1) as f64);
        let last = latencies.percentiles();
        println!(
            "  {about}: {:.1} ms (p50), {:.1} ms (p99), {:.1} ms (max), {spent:.1?} of a processor for each write",
            last.p50, last.p99, last.max
        );
        verdicts.push((goal, format!("{:.1}", last.p50), last.p50 <= 20.0));
    }
    let watchers = Watchers::open(world, place, WATCHERS, WatchForm::default()).await.unwrap();
    let before = busy(process);
    world.sleep(IDLE).await;
    let spent = busy(process).saturating_sub(before);
    drop(watchers);
    println!("  idle with {WATCHERS} watches open: {spent:.1?} of a processor in {IDLE:?}");
    verdicts.push((
        "idle with 1,000 watches: at most 0.1 % of a processor",
        format!("{:.2} %", spent.as_secs_f64() / IDLE.as_secs_f64() * 100.0),
        spent <= NOTHING,
    ));
}

// ------------------------------------------------------------------------------ memory of objects

async fn memory_of_objects(world: &World, server: &OwnServer, verdicts: &mut Verdicts) {
    let place = Arc::new(Place::new(world, Target::read(&server.kubeconfig).unwrap(), 1));
    place.prepare(world).await.unwrap();
    let before = resident(server.process.id());
    let load = Load {
        operation: Operation::Create,
        clients: READERS,
        span: Duration::from_secs(300),
        edition: 0,
        most: Some(vec![STORED / READERS as u64; READERS]),
    };
    let measured = measure(world, &place, &load).await.unwrap();
    assert_eq!(measured.errors, 0, "{:?}", measured.complaint);
    let growth = (resident(server.process.id()) - before) as f64 / STORED as f64;
    let mut client = Client::connect(world, &place.target).await.unwrap();
    let one = client.send(place.request(Method::GET, &place.path("passing-0-0"), "")).await.unwrap();
    let times = growth / one.length as f64;
    println!("\n{STORED} stored objects: {growth:.0} bytes for each, whose JSON is {} bytes", one.length);
    verdicts.push((
        "memory for each stored object: at most 1.50 of its JSON",
        format!("{times:.2}"),
        times <= 1.5,
    ));
}
