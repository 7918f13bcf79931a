//! The cost of a fork of a large cluster until it is used, beside the goals; then what its first answer and its first write cost.
//!
//! `cargo xtask bench forks` runs it: `setpoint up --testing` in a process of its own, with all control loops and a node. It
//! fails if a goal is missed. Numbers choose how many forks, and of how many objects.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[expect(dead_code, reason = "only the command and its tests use the rest")]
#[path = "../src/bench"]
mod bench {
    pub(crate) mod client;
    pub(crate) mod kubeconfig;
    mod trust;
}
#[expect(dead_code, reason = "only memory counts here")]
#[path = "server/process.rs"]
mod process;

use bench::{client::Client, kubeconfig::Target};
use http::Method;
use process::resident;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use world::World;

const SETPOINT: &str = env!("CARGO_BIN_EXE_setpoint");
const FORKS: usize = 1_000;
const OBJECTS: usize = 10_000;
/// The value of each object: its manifest has about a kilobyte with what the server adds.
const VALUE: usize = 500;
/// So many forks are used.
const USED: usize = 20;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TESTING: &str = "/apis/testing.setpoint.dev/v1";

/// The goals for each fork until it is written to: in milliseconds and kilobytes.
const MOST_TIME: f64 = 5.0;
const MOST_MEMORY: f64 = 100.0;

fn main() -> ExitCode {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let forks = numbers.first().copied().unwrap_or(FORKS).max(1);
    let objects = numbers.get(1).copied().unwrap_or(OBJECTS).max(1);
    let are_met = world::run(|world| async move { measure(&world, forks, objects).await }).unwrap();
    if are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what forks cost; returns whether the goals are met.
async fn measure(world: &World, forks: usize, objects: usize) -> bool {
    let mut cluster = Cluster::start(world).await;
    for number in 0..objects {
        cluster.write(MAPS, &map(&format!("map-{number}"), &"x".repeat(VALUE))).await;
    }
    cluster.write(&format!("{TESTING}/settles"), &testing("Settle", "ready")).await;
    let before = cluster.memory();
    let (mut times, mut kubeconfigs) = (Vec::new(), Vec::new());
    for number in 0..forks {
        let begun = world.now();
        let made =
            cluster.write(&format!("{TESTING}/forks"), &testing("Fork", &format!("fork-{number}"))).await;
        times.push(milliseconds(world.now().since(begun)));
        if number < USED {
            kubeconfigs.push(made["status"]["kubeconfig"].as_str().unwrap().to_owned());
        }
    }
    let kilobytes =
        |since: u64, count: usize| cluster.memory().saturating_sub(since) as f64 / count as f64 / 1e3;
    let memory = kilobytes(before, forks);
    let mean = times.iter().sum::<f64>() / forks as f64;
    times.sort_by(f64::total_cmp);
    println!("{forks} forks of a cluster of {objects} objects, each until it is used");
    let goals = [("time of each", mean, MOST_TIME, "ms"), ("memory of each", memory, MOST_MEMORY, "KB")];
    for (what, value, most, unit) in goals {
        let verdict = if value <= most { "met" } else { "MISSED" };
        println!("  {what:<28} {value:>7.2} {unit}, at most {most:>4.0}   {verdict}");
    }
    println!("  half of them took at most    {:>7.2} ms", times[forks / 2]);
    println!("  the slowest took             {:>7.2} ms", times[forks - 1]);

    let (mut first_read, mut first_write) = (0.0, 0.0);
    let (used, unused) = (kubeconfigs.len(), cluster.memory());
    let mut clients = Vec::new();
    for kubeconfig in &kubeconfigs {
        let begun = world.now();
        let target = target(kubeconfig);
        let mut client = Client::connect(world, &target).await.unwrap();
        client.ask(world, target.request(Method::GET, &format!("{MAPS}/map-0"), "")).await.unwrap();
        let read = world.now();
        let body = map("new", "x").to_string();
        client.ask(world, target.request(Method::POST, MAPS, body)).await.unwrap();
        first_read += milliseconds(read.since(begun)) / used as f64;
        first_write += milliseconds(world.now().since(read)) / used as f64;
        clients.push(client);
    }
    println!("{used} of them, used");
    println!("  first answer                 {first_read:>7.2} ms");
    println!("  first write                  {first_write:>7.2} ms");
    println!("  memory of each with its loops{:>7.0} KB", kilobytes(unused, used));
    mean <= MOST_TIME && memory <= MOST_MEMORY
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

fn testing(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "testing.setpoint.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": {}})
}

/// The server of a kubeconfig.
fn target(kubeconfig: &str) -> Target {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, kubeconfig).unwrap();
    Target::read(file.path()).unwrap()
}

/// `setpoint up --testing` and a client of it; it ends when this is dropped.
struct Cluster {
    world: World,
    process: Child,
    target: Target,
    client: Client,
    _folder: TempDir,
}

impl Cluster {
    async fn start(world: &World) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(SETPOINT);
        command.args(["up", "--testing", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir"]);
        let mut process =
            command.arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let ready = world.blocking(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.find_map(|line| Some(line.strip_prefix("ready ")?.split_once(" kubeconfig=")?.1.to_owned()))
        });
        let target = Target::read(ready.await.unwrap().as_ref()).unwrap();
        let client = Client::connect(world, &target).await.unwrap();
        Cluster { world: world.clone(), process, target, client, _folder: folder }
    }

    /// Creates an object, and returns it as the server answers it.
    async fn write(&mut self, path: &str, object: &Value) -> Value {
        let request = self.target.request(Method::POST, path, object.to_string());
        serde_json::from_slice(&self.client.ask(&self.world, request).await.unwrap()).unwrap()
    }

    fn memory(&self) -> u64 {
        resident(self.process.id())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
