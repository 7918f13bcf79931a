//! Measures the stores, next to the limits of this machine's disk and memory in the same run.
//!
//! `cargo xtask bench store` runs it, with an etcd if one can be found.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to read")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

#[path = "store/bare_file.rs"]
mod bare_file;
#[expect(dead_code, reason = "only tests use the rest")]
#[path = "../tests/etcd_server.rs"]
mod etcd_server;
#[path = "store/goals.rs"]
mod goals;

use bare_file::BareFile;
use etcd_server::EtcdServer;
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use store::{Batch, Bytes, Embedded, Etcd, EtcdOptions, Event, Memory, Options, Progress, ReadStore, Store};
use tokio::sync::mpsc;
use world::World;

/// Rounds of each measurement, taken in turns by the stores; the median counts.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(700);
const KEYS: u64 = 10_000;
const VALUE: usize = 1024;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [flag, directory, objects, result] = &arguments[..]
        && flag == REOPEN
    {
        let (directory, objects) = (Path::new(directory), objects.parse().unwrap());
        let reopened = world::run(|world| async move { reopen(&world, directory, objects).await });
        let nanoseconds = reopened.unwrap();
        std::fs::write(result, nanoseconds.to_string()).unwrap();
        return ExitCode::SUCCESS;
    }
    world::run(|world| async move {
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut verdicts = Vec::new();
        commits(&world, scratch.path(), &mut verdicts).await;
        fan_out(&world, scratch.path()).await;
        many_objects(&world, scratch.path(), 100_000, &mut verdicts).await;
        many_objects(&world, scratch.path(), 1_000_000, &mut Vec::new()).await;
        goals::report(&verdicts)
    })
    .unwrap()
}

type Verdicts = Vec<(&'static str, String, bool)>;

// ------------------------------------------------------------------------------------- commits

async fn commits(world: &World, scratch: &Path, verdicts: &mut Verdicts) {
    println!("durable commits of {VALUE} bytes a second (median of {ROUNDS} rounds, one after the other)");
    println!("{:>8} {:>12} {:>12} {:>12} {:>12}", "writers", "bare file", "embedded", "etcd", "memory");
    let embedded = Embedded::open(world, &scratch.join("commits"), Options::default()).await.unwrap();
    let embedded: Arc<dyn Store> = Arc::new(embedded);
    let memory: Arc<dyn Store> = Arc::new(Memory::new());
    let etcd = etcd(world).await;
    for writers in [1, 8, 64] {
        let mut results: [Vec<f64>; 4] = Default::default();
        for round in 0..ROUNDS {
            let bare = scratch.join(format!("bare-{writers}-{round}"));
            results[0].push(bare_appends(world, bare, writers).await);
            results[1].push(store_commits(world, &embedded, writers).await);
            if let Some((etcd, _server)) = &etcd {
                results[2].push(store_commits(world, etcd, writers).await);
            }
            results[3].push(store_commits(world, &memory, writers).await);
        }
        let [bare, embedded, etcd, memory] = results.map(median);
        let beside = |rate: f64| format!("{rate:.0} ({:.2})", rate / bare);
        println!(
            "{writers:>8} {bare:>12.0} {:>12} {:>12} {:>12}",
            beside(embedded),
            beside(etcd),
            beside(memory)
        );
        let ratio = embedded / bare;
        match writers {
            1 => verdicts.push((
                "one writer: at least 0.80 of append + fdatasync",
                format!("{ratio:.2}"),
                ratio >= 0.8,
            )),
            64 => verdicts.push((
                "64 writers: at least 0.50 of batched append",
                format!("{ratio:.2}"),
                ratio >= 0.5,
            )),
            _ => {}
        }
    }
    if etcd.is_none() {
        println!("  (no etcd: SETPOINT_ETCD names none)");
    }
}

async fn etcd(world: &World) -> Option<(Arc<dyn Store>, EtcdServer)> {
    std::env::var_os("SETPOINT_ETCD")?;
    let server = EtcdServer::start(&[]);
    let store = Etcd::connect(world, EtcdOptions::new([server.url()])).await.unwrap();
    Some((Arc::new(store), server))
}

async fn store_commits(world: &World, store: &Arc<dyn Store>, writers: u64) -> f64 {
    let value = Bytes::from(vec![7; VALUE]);
    let done = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks = (0..writers).map(|writer| {
        let (store, value, done) = (Arc::clone(store), value.clone(), Arc::clone(&done));
        world.spawn("writer", async move {
            for number in 0.. {
                if start.elapsed() > ROUND {
                    break;
                }
                let key = format!("/bench/{writer}/{}", number % (KEYS / writers));
                store.commit(Batch::new().put(key, value.clone())).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

/// The limit of the disk. One writer: write, sync, repeat. Several: a thread writes and syncs all records
/// that have queued up.
async fn bare_appends(world: &World, path: PathBuf, writers: u64) -> f64 {
    let mut file = File::options().create_new(true).append(true).open(&path).unwrap();
    let record = vec![7_u8; VALUE];
    let start = Instant::now();
    if writers == 1 {
        let loop_ = move || {
            let mut done = 0;
            while start.elapsed() < ROUND {
                file.write_all(&record).unwrap();
                file.sync_data().unwrap();
                done += 1;
            }
            f64::from(done) / start.elapsed().as_secs_f64()
        };
        return world.blocking(loop_).await;
    }
    drop(file);
    let bare = BareFile::open(world, &path).unwrap();
    let record = Bytes::from(record);
    let done = Arc::new(AtomicU64::new(0));
    let tasks = (0..writers).map(|_| {
        let (bare, record, done) = (bare.clone(), record.clone(), Arc::clone(&done));
        world.spawn("writer", async move {
            while start.elapsed() < ROUND {
                bare.append(record.clone()).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let rate = done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    std::fs::remove_file(path).unwrap();
    rate
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

// ------------------------------------------------------------------------------------- fan-out

async fn fan_out(world: &World, scratch: &Path) {
    const READERS: usize = 1000;
    const COMMITS: usize = 200;
    println!("\nfeed fan-out: one writer, {READERS} readers of the same prefix, {COMMITS} commits");
    let embedded = Embedded::open(world, &scratch.join("fan-out"), Options::default()).await.unwrap();
    let stores: [(&str, Arc<dyn Store>); 2] =
        [("memory", Arc::new(Memory::new())), ("embedded", Arc::new(embedded))];
    for (name, store) in stores {
        let (arrived, mut arrivals) = mpsc::channel(READERS);
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let mut feed = store.feed("/bench/".into(), None).await.unwrap();
            let arrived = arrived.clone();
            readers.push(world.spawn("reader", async move {
                for _ in 0..COMMITS {
                    let Event::Commit(_) = feed.next().await.unwrap() else { continue };
                    arrived.send(()).await.unwrap();
                }
            }));
        }
        let mut last = Vec::new();
        let start = Instant::now();
        for number in 0..COMMITS {
            store.commit(Batch::new().put(format!("/bench/{number}"), vec![7; VALUE])).await.unwrap();
            let committed = Instant::now();
            for _ in 0..READERS {
                arrivals.recv().await.unwrap();
            }
            last.push(committed.elapsed().as_secs_f64() * 1e3);
        }
        let rate = (READERS * COMMITS) as f64 / start.elapsed().as_secs_f64();
        last.sort_by(f64::total_cmp);
        let (half, most) = (last[COMMITS / 2], last[COMMITS * 99 / 100]);
        println!(
            "  {name:<10} {rate:>9.0} deliveries/s   last of {READERS} reached after {half:.2} ms (p50), {most:.2} ms (p99)"
        );
    }
}

// ------------------------------------------------------------------------------- many objects

const SMALL: usize = 300;
/// Starts this program again for the second half, so that the process has never held the objects.
const REOPEN: &str = "--reopen";

async fn many_objects(world: &World, scratch: &Path, objects: u64, verdicts: &mut Verdicts) {
    println!("\n{objects} objects of {SMALL} bytes, embedded");
    let directory = scratch.join(format!("objects-{objects}"));
    let store = Embedded::open(world, &directory, Options::default()).await.unwrap();
    let start = Instant::now();
    let mut number = 0;
    while number < objects {
        let end = objects.min(number + 125);
        let batch = (number..end).fold(Batch::new(), |batch, at| batch.put(key(at), vec![7; SMALL]));
        store.commit(batch).await.unwrap();
        number = end;
    }
    println!("  written in {:.1} s", start.elapsed().as_secs_f64());
    drop(store);
    let result = scratch.join("nanoseconds");
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    assert!(
        again.arg(REOPEN).arg(&directory).arg(objects.to_string()).arg(&result).status().unwrap().success()
    );
    let nanoseconds: f64 = std::fs::read_to_string(result).unwrap().parse().unwrap();
    let met = nanoseconds < 1000.0;
    verdicts.push(("a point read among 100,000 objects: under 1000 ns", format!("{nanoseconds:.0}"), met));
}

fn key(number: u64) -> Bytes {
    format!("/registry/things/namespace-{}/object-{number}", number % 100).into()
}

/// Opens the store and reads the objects; returns the nanoseconds per point read.
async fn reopen(world: &World, directory: &Path, objects: u64) -> f64 {
    let before = resident();
    let start = Instant::now();
    let progress = |progress: Progress| {
        print!("\r  opening: {:>3} %", progress.done * 100 / progress.total.max(1));
        std::io::stdout().flush().unwrap();
    };
    let options = Options { progress: Some(Box::new(progress)), ..Options::default() };
    let store = Embedded::open(world, directory, options).await.unwrap();
    println!(" after {:.1} s", start.elapsed().as_secs_f64());
    let payload =
        SMALL as f64 + (0..100).map(|at| key(at * (objects / 100)).len() as f64).sum::<f64>() / 100.0;
    let each = (resident() - before) as f64 / objects as f64;
    println!(
        "  memory: {each:.0} bytes for each object of {payload:.0} (key and value): {:.2} times",
        each / payload
    );

    const READS: u64 = 1_000_000;
    let mut state = 1_u64;
    let keys: Vec<_> = (0..READS)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            key((state >> 33) % objects)
        })
        .collect();
    let start = Instant::now();
    for key in keys {
        assert!(store.get(key, None).await.unwrap().entry.is_some());
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / READS as f64;
    println!("  random point reads: {:.0}/s, {nanoseconds:.0} ns each", 1e9 / nanoseconds);
    let start = Instant::now();
    let page = store.range(store::Range::all()).await.unwrap();
    let each = start.elapsed().as_secs_f64() * 1e9 / objects as f64;
    println!("  all {} in one range: {each:.0} ns each", page.entries.len());
    nanoseconds
}

/// Memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
