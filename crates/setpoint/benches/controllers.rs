//! How fast the control loops are, beside the real kube-controller-manager and kube-scheduler on the same server.
//!
//! `cargo xtask bench controllers` runs it, and names the folder with the real programs in `SETPOINT_TOOLS`. Both sides
//! get a fresh `setpoint up` with the same simulated nodes; on the other side it runs no control loops of its own.
//! Processor time and memory are those of all processes of a side. A number sets the size of the work in percent.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]

#[path = "../src/bench"]
mod bench {
    pub(crate) mod own_server;
}
#[path = "../../store/benches/store/goals.rs"]
mod goals;
#[path = "server/process.rs"]
mod process;
#[path = "controllers/side.rs"]
mod side;
#[path = "controllers/work.rs"]
mod work;

use side::{Side, Sort};
use std::{path::PathBuf, process::ExitCode, time::Duration};
use work::Work;
use world::World;

const SETPOINT: &str = env!("CARGO_BIN_EXE_setpoint");
/// The environment variable with the folder of the real programs.
const TOOLS: &str = "SETPOINT_TOOLS";
const IDLE: Duration = Duration::from_secs(10);
const STARTS: usize = 7;

/// What one piece of work cost one side.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    requests: f64,
    processor_seconds: f64,
    /// Of all its processes, after the work.
    bytes: f64,
}

type Verdicts = Vec<(String, String, bool)>;

fn main() -> ExitCode {
    let percent = std::env::args().skip(1).find_map(|it| it.parse::<usize>().ok()).unwrap_or(100);
    world::run(|world| async move { run(&world, percent.max(1)).await }).unwrap()
}

async fn run(world: &World, percent: usize) -> ExitCode {
    let mut verdicts = Verdicts::new();
    let loops = idle(world, &mut verdicts).await;
    let tools = std::env::var_os(TOOLS).map(PathBuf::from);
    let mut table = Vec::new();
    let mut own = Side::start(world, Sort::Own, nodes(percent)).await;
    for work in Work::all(percent) {
        table.push((work, own.measure(world, work).await, None));
    }
    drop(own);
    let mut peer_bytes = None;
    if let Some(tools) = tools {
        let mut peer = Side::start(world, Sort::Real(tools), nodes(percent)).await;
        peer_bytes = Some(peer.loop_bytes());
        for (work, _, cost) in &mut table {
            *cost = Some(peer.measure(world, *work).await);
        }
    }
    report(&table, &mut verdicts);
    if let Some(peer) = peer_bytes {
        let ratio = peer as f64 / (loops as f64).max(1.0);
        println!("\nmemory of idle control loops: {} here, {} there", megabytes(loops), megabytes(peer));
        verdicts.push((
            "memory of idle control loops: a tenth".to_owned(),
            format!("{ratio:.1}"),
            ratio >= 10.0,
        ));
    }
    goals::report(&verdicts)
}

/// Enough for all pods of the work at once: a node takes 110.
fn nodes(percent: usize) -> usize {
    (60 * percent / 100).max(3)
}

/// An idle server with everything on; returns the memory of its control loops.
async fn idle(world: &World, verdicts: &mut Verdicts) -> u64 {
    let bare = Side::start(world, Sort::None, 0).await;
    let mut times = Vec::new();
    let mut all = Side::start(world, Sort::Own, 1).await;
    for number in 0..STARTS {
        times.push(all.time_to_running_pod(world, number).await);
    }
    drop(all);
    // Without the memory of those pods.
    let all = Side::start(world, Sort::Own, 1).await;
    world.sleep(Duration::from_secs(2)).await;
    let (busy, bytes) = (all.processor_seconds(), all.bytes());
    world.sleep(IDLE).await;
    let share = (all.processor_seconds() - busy) / IDLE.as_secs_f64();
    let first = times[0];
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!(
        "idle: {} with everything on, {} without control loops and nodes",
        megabytes(bytes),
        megabytes(bare.bytes())
    );
    println!("a pod is Running after {median:.3} s (median of {STARTS}); the first one after {first:.3} s");
    println!("processor time while nothing happens: {:.2}%", share * 100.0);
    verdicts.push((
        "idle memory with everything on: under 40 MB".to_owned(),
        megabytes(bytes),
        bytes < 40 << 20,
    ));
    verdicts.push(("a Running pod: within 0.2 s".to_owned(), format!("{median:.3} s"), median < 0.2));
    verdicts.push(("idle processor time: none".to_owned(), format!("{:.2}%", share * 100.0), share < 0.002));
    bytes.saturating_sub(bare.bytes())
}

fn report(table: &[(Work, Cost, Option<Cost>)], verdicts: &mut Verdicts) {
    println!("\n{:<40} {:>10} {:>10} {:>12} {:>10}", "", "seconds", "requests", "of a cpu s", "memory");
    for (work, own, peer) in table {
        let line = |name: &str, cost: &Cost| {
            println!(
                "{name:<40} {:>10.2} {:>10.0} {:>12.2} {:>10}",
                cost.seconds,
                cost.requests,
                cost.processor_seconds,
                megabytes(cost.bytes as u64)
            );
        };
        line(&work.to_string(), own);
        let Some(peer) = peer else { continue };
        line("  kube-controller-manager, kube-scheduler", peer);
        println!(
            "{:<40} {:>9.1}x {:>9.1}x {:>11.1}x {:>9.1}x",
            "  times ours",
            peer.seconds / own.seconds,
            peer.requests / own.requests,
            peer.processor_seconds / own.processor_seconds,
            peer.bytes / own.bytes
        );
        let ratio = peer.seconds / own.seconds;
        verdicts.push((format!("{work}: 5 times faster"), format!("{ratio:.1}"), ratio >= 5.0));
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}
