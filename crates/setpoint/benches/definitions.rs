//! The cost of a custom resource definition: writing, storing, and starting with it.
//!
//! `cargo xtask bench definitions` runs it: real definitions, many times under other names, first written
//! in-process, which shows the server's own work, and then over TLS to another process, which is restarted
//! with its stored definitions.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[expect(dead_code, reason = "only the command and its tests use the rest")]
#[path = "../src/bench"]
mod bench {
    pub(crate) mod client;
    pub(crate) mod kubeconfig;
    mod trust;
}
#[path = "server/process.rs"]
mod process;
#[path = "definitions/real.rs"]
mod real;

use bench::{client::Client, kubeconfig::Target};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use process::{busy, resident};
use serde_json::Value;
use server::Caller;
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use world::World;

const SETPOINT: &str = env!("CARGO_BIN_EXE_setpoint");
const COLLECTION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The definitions and their numbers: so many that for the last third the store drops as much history as it
/// adds.
const SUBJECTS: [(&str, usize); 3] = [
    ("certificates.cert-manager.io", 3300),
    ("httproutes.gateway.networking.k8s.io", 450),
    ("prometheuses.monitoring.coreos.com", 240),
];
/// Writes definitions in this process, for a profiler: a name and a number.
const IN_PROCESS: &str = "--in-process";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = world::run(|world| async move {
        match arguments[..] {
            [IN_PROCESS, name, many] => in_process(&world, name, many.parse().unwrap()).await,
            _ => {
                for (name, many) in SUBJECTS {
                    println!("{many} times {name}");
                    in_process(&world, name, many).await;
                    measure(&world, name, many).await;
                }
            }
        }
    });
    outcome.unwrap();
    ExitCode::SUCCESS
}

async fn measure(world: &World, name: &str, many: usize) {
    let definition = real::definition(name);
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = Running::start(world, &folder).await;
    let target = Target::read(&server.kubeconfig).unwrap();
    let mut client = Client::connect(world, &target).await.unwrap();
    println!("  {} KB each in the request", real::renamed(&definition, 0).len() / 1000);
    let process = server.process.id();
    let (begin, before, held) = (world.now(), busy(process), resident(process));
    let mut held_late = 0;
    for number in 0..many {
        if number == many - many / 3 {
            held_late = resident(process);
        }
        let body = real::renamed(&definition, number);
        let answer = client.send(target.request(Method::POST, COLLECTION, body)).await.unwrap();
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.complaint());
    }
    let took = world.now().since(begin);
    let spent = busy(process).saturating_sub(before);
    let last = resident(process);
    let kilobytes = |since: u64, count: usize| last.saturating_sub(since) as f64 / count as f64 / 1e3;
    let length = stored_length(&mut client, &target, &definition).await;
    let each = |whole: Duration| whole.as_secs_f64() * 1e3 / many as f64;
    println!(
        "  written: {:.0} a second, {:.2} ms of a processor each; {:.0} KB with the past that is kept for watches, {:.0} KB \
         once that is full; {} KB are its JSON",
        many as f64 / took.as_secs_f64(),
        each(spent),
        kilobytes(held, many),
        kilobytes(held_late, many / 3),
        length / 1000
    );
    let begin = world.now();
    let index = client.send(target.request(Method::GET, "/openapi/v3", "")).await.unwrap();
    println!("  the index of OpenAPI, {} bytes: {:.1?}", index.length, world.now().since(begin));
    drop((client, server));
    let (server, took) = Running::start(world, &folder).await;
    let process = server.process.id();
    println!(
        "  started again with all of them: {took:.0?} until ready, {:.0?} of a processor, {:.0} MB",
        busy(process),
        resident(process) as f64 / 1e6
    );
}

/// The length of a definition's stored JSON.
async fn stored_length(client: &mut Client, target: &Target, definition: &Value) -> usize {
    let sent: Value = serde_json::from_str(&real::renamed(definition, 0)).unwrap();
    let path = format!("{COLLECTION}/{}", sent["metadata"]["name"].as_str().unwrap());
    client.send(target.request(Method::GET, &path, "")).await.unwrap().length
}

/// `setpoint up` on a permanent folder, killed when this is dropped.
struct Running {
    process: Child,
    kubeconfig: PathBuf,
}

impl Running {
    async fn start(world: &World, folder: &TempDir) -> (Running, Duration) {
        let begin = world.now();
        let mut command = Command::new(Path::new(SETPOINT));
        command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let ready = world.blocking(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.find_map(|line| Some(line.strip_prefix("ready ")?.split_once(" kubeconfig=")?.1.to_owned()))
        });
        let kubeconfig = ready.await.unwrap().into();
        (Running { process, kubeconfig }, world.now().since(begin))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

async fn in_process(world: &World, name: &str, many: usize) {
    let definition = real::definition(name);
    let store = Arc::new(store::Memory::new());
    let server = server::Server::start(world, store, server::Config::default()).await.unwrap();
    let bodies: Vec<_> = (0..many).map(|number| Bytes::from(real::renamed(&definition, number))).collect();
    let before = busy(std::process::id());
    for body in bodies {
        let request = Request::builder().method("POST").uri(COLLECTION);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let mut request = request.body(Full::new(body)).unwrap();
        request.extensions_mut().insert(Caller::known("admin", "", vec!["system:masters".to_owned()]));
        let response = server.handle(request).await;
        let status = response.status();
        let answer = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status.as_u16(), 201, "{}", String::from_utf8_lossy(&answer));
    }
    let spent = busy(std::process::id()).saturating_sub(before);
    println!("  in process: {:.2} ms of a processor each", spent.as_secs_f64() * 1e3 / many as f64);
}
