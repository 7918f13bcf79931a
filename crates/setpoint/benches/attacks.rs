//! The cost of hostile requests to a server: memory, processor time, and the latency of `/readyz` meanwhile.
//!
//! `cargo xtask bench attacks` runs it against the binary of this tree; `--binary PATH`, once or more,
//! against others, in columns side by side; `--only TEXT` runs the attacks whose name contains it. Each
//! attack gets a fresh server, and a server that takes 6 GB or 60 s is killed. Every request goes over TLS to
//! another process.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[expect(dead_code, reason = "only other benchmarks use the rest")]
#[path = "../src/bench"]
mod bench {
    pub(crate) mod client;
    pub(crate) mod kubeconfig;
    mod trust;
}
#[path = "attacks/bodies.rs"]
mod bodies;
#[path = "attacks/catalog.rs"]
mod catalog;
#[path = "attacks/requests.rs"]
mod requests;
#[path = "attacks/scene.rs"]
mod scene;
#[path = "attacks/victim.rs"]
mod victim;

use catalog::{ATTACKS, Attack};
use scene::Scene;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use victim::Victim;
use world::World;

/// A server that works on one attack for longer is killed.
const MOST_TIME: Duration = Duration::from_secs(60);
/// A server that takes more memory is killed.
const MOST_MEMORY: u64 = 6 << 30;

/// The cost of an attack to the server.
struct Outcome {
    answer: String,
    memory: u64,
    processor: Duration,
    readyz: Duration,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut binaries, mut only) = (Vec::new(), String::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--binary" => binaries.extend(arguments.next().map(PathBuf::from)),
            "--only" => only = arguments.next().unwrap_or_default(),
            // Cargo passes it to every benchmark.
            "--bench" => {}
            other => {
                println!("unknown argument: {other}");
                return ExitCode::FAILURE;
            }
        }
    }
    if binaries.is_empty() {
        binaries.push(PathBuf::from(env!("CARGO_BIN_EXE_setpoint")));
    }
    world::run(|world| async move {
        println!(
            "each cell: {}\n",
            binaries.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(" → ")
        );
        println!("| attack | answer | memory | processor time | longest `/readyz` |\n|---|---|---|---|---|");
        for attack in ATTACKS.iter().filter(|attack| attack.name.contains(&only)) {
            let mut outcomes = Vec::new();
            for binary in &binaries {
                outcomes.push(run(&world, binary, attack).await);
            }
            print(attack.name, &outcomes);
        }
    })
    .unwrap();
    ExitCode::SUCCESS
}

/// Runs one attack against a fresh server.
async fn run(world: &World, binary: &Path, attack: &Attack) -> Outcome {
    let victim = Victim::start(world, binary, attack.flags).await;
    let scene = Scene::new(world, &victim, attack.rights).await;
    (attack.prepare)(&scene).await;
    let watched = victim.watch(world, &scene.attacker).await;
    let struck = world.timeout(MOST_TIME, (attack.strike)(&scene)).await;
    watched.end(struck.ok()).await
}

fn print(name: &str, outcomes: &[Outcome]) {
    let cell = |show: &dyn Fn(&Outcome) -> String| outcomes.iter().map(show).collect::<Vec<_>>().join(" → ");
    println!(
        "| {name} | {} | {} | {} | {} |",
        cell(&|outcome| outcome.answer.clone()),
        cell(&|outcome| format!("{:.0} MB", outcome.memory as f64 / 1e6)),
        cell(&|outcome| format!("{:.2} s", outcome.processor.as_secs_f64())),
        cell(&|outcome| format!("{:.0} ms", outcome.readyz.as_secs_f64() * 1e3)),
    );
}
