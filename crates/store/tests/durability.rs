//! What the embedded store guarantees about the disk, with real files and real processes.

#[expect(dead_code, reason = "the child process runs its main")]
#[path = "torture.rs"]
mod torture;

use super::contract::Random;
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};
use store::{Batch, Embedded, Error, Event, Limits, Options, Range, ReadStore, Revision, Store};
use world::World;

const TORTURE: &str = env!("CARGO_BIN_EXE_store-torture");
const ROUNDS: u64 = 200;
const WRITERS: u64 = 6;

fn small() -> Options {
    Options {
        limits: Limits { changes: 200, bytes: 1 << 20, live_bytes: u64::MAX },
        segment_bytes: 256 << 10,
        progress: None,
    }
}

async fn open(world: &World, directory: &Path) -> Embedded {
    Embedded::open(world, directory, Options::default()).await.unwrap()
}

#[test]
fn kill_9_loses_no_acknowledged_write() {
    world::run(|world| async move {
        let seed = world.draw();
        println!("seed {seed}, {ROUNDS} rounds");
        let mut random = Random(seed);
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("data");
        let mut revision = Revision(0);
        let mut acknowledged = 0;
        for round in 0..ROUNDS {
            let acks = write_and_kill(&directory, Duration::from_micros(random.below(40_000)));
            acknowledged += acks.len();
            revision = check(&world, &directory, &acks, revision, round).await;
        }
        println!("{acknowledged} acknowledged writes, the last at revision {revision}");
        assert!(acknowledged as u64 > ROUNDS, "the rounds were long enough to write something");
    })
    .unwrap();
}

#[test]
fn a_fork_in_memory_is_not_in_the_directory() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let store = open(&world, scratch.path()).await;
        let revision = store.commit(Batch::new().put("a", "here")).await.unwrap();
        let fork = store.fork_in_memory().unwrap();
        assert_eq!(fork.revision().await.unwrap(), revision);
        fork.commit(Batch::new().put("a", "there")).await.unwrap();
        drop(store);
        let kept = open(&world, scratch.path()).await.get("a".into(), None).await.unwrap().entry.unwrap();
        assert_eq!(kept.value, "here");
    })
    .unwrap();
}

/// (revision, writer, number) of every commit that the process reported before it was killed.
fn write_and_kill(directory: &Path, after: Duration) -> Vec<(u64, u64, u64)> {
    let mut child = Command::new(TORTURE)
        .arg("write")
        .arg(directory)
        .arg(WRITERS.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    // Wait for the first acknowledgement, so that every round has something to lose.
    lines.read_until(b'\n', &mut said).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the process is killed after a real time")]
    std::thread::sleep(after);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    lines.read_to_end(&mut said).unwrap();
    let whole = said.rsplitn(2, |byte| *byte == b'\n').last().unwrap_or_default();
    let text = str::from_utf8(whole).unwrap();
    let numbers = |line: &str| line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u64>>();
    text.lines().map(numbers).map(|line| (line[0], line[1], line[2])).collect()
}

async fn check(
    world: &World,
    directory: &Path,
    acks: &[(u64, u64, u64)],
    before: Revision,
    round: u64,
) -> Revision {
    let store = Embedded::open(world, directory, small()).await.unwrap();
    let page = store.range(Range::prefix("/k/")).await.unwrap();
    let entries: BTreeMap<_, _> = page.entries.iter().map(|entry| (entry.key.clone(), entry)).collect();
    let mut last = BTreeMap::new();
    for (revision, writer, number) in acks {
        assert!(*revision > before.0, "round {round}: revisions go on");
        last.insert(*writer, (*number, *revision));
    }
    for writer in 0..WRITERS {
        let stored = store.get(torture::last_key(writer), None).await.unwrap().entry;
        let stored = stored.map_or(0, |entry| torture::number(&entry.value));
        let (acked, revision) = last.get(&writer).copied().unwrap_or_default();
        assert!(stored >= acked, "round {round}: writer {writer} had {acked} acknowledged, has {stored}");
        // Whole batches only: exactly the last fifty are there, each as it was written.
        for number in stored.saturating_sub(49).max(1)..=stored {
            let entry = entries.get(&torture::key(writer, number));
            let entry = entry.unwrap_or_else(|| panic!("round {round}: {writer}/{number} is lost"));
            assert_eq!(entry.value, torture::value(writer, number), "round {round}: {writer}/{number}");
            if number == acked {
                assert_eq!(entry.revision.0, revision, "round {round}: {writer}/{number}");
            }
        }
        if stored > 50 {
            assert!(!entries.contains_key(&torture::key(writer, stored - 50)), "round {round}");
        }
    }
    page.revision
}

#[test]
fn a_flipped_byte_is_reported_with_file_and_offset() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("data");
        let store = open(&world, &directory).await;
        for number in 0..100 {
            store.commit(Batch::new().put(format!("/{number}"), vec![number; 500])).await.unwrap();
        }
        drop(store);
        let mut files = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
        let log = files.find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
        let mut bytes = std::fs::read(&log).unwrap();
        bytes[20_000] ^= 1;
        std::fs::write(&log, bytes).unwrap();
        let refused = Embedded::open(&world, &directory, Options::default()).await.unwrap_err();
        let Error::Corrupt(corruption) = refused else { panic!("{refused}") };
        assert_eq!(corruption.file, log);
        assert!((19_000..=20_000).contains(&corruption.offset), "{corruption}");
    })
    .unwrap();
}

#[test]
fn a_full_disk_keeps_serving_reads() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(TORTURE);
    command.arg("fill").arg(scratch.path().join("data")).stdout(Stdio::piped());
    // Limits the files of this process to 200 kB; the kernel fails writes beyond.
    #[expect(unsafe_code, reason = "only there, between fork and exec, can a child's limits be set")]
    // SAFETY: the closure only makes two system calls; it allocates nothing and takes no locks.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 200_000, rlim_max: 200_000 };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("full after "), "{said} {}", String::from_utf8_lossy(&output.stderr));
    let acknowledged: u64 = said.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(acknowledged > 10, "{said}");
    // With space again, every acknowledged commit is there, and writes succeed.
    world::run(|world| async move {
        let store = Embedded::open(&world, &scratch.path().join("data"), small()).await.unwrap();
        let page = store.range(Range::prefix("/k/")).await.unwrap();
        assert_eq!(page.entries.len() as u64, acknowledged);
        for (entry, number) in page.entries.iter().zip(1..) {
            assert_eq!(entry.value, torture::value(0, number));
        }
        store.commit(Batch::new().put("/more", vec![1; 300_000])).await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_second_process_learns_which_one_holds_the_lock() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let first = open(&world, scratch.path()).await;
        let second = Embedded::open(&world, scratch.path(), Options::default()).await.unwrap_err();
        let Error::InUse { directory, holder } = &second else { panic!("{second}") };
        assert_eq!(
            (directory.as_path(), holder),
            (scratch.path(), &format!("process {}", std::process::id()))
        );
        let mut other = Command::new(TORTURE);
        let other = other.arg("write").arg(scratch.path()).arg("1").stderr(Stdio::piped()).output().unwrap();
        assert!(String::from_utf8_lossy(&other.stderr).contains("InUse"), "{other:?}");
        drop(first);
        open(&world, scratch.path()).await;
    })
    .unwrap();
}

#[test]
fn a_feed_goes_on_from_its_last_revision_after_a_restart() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let store = open(&world, scratch.path()).await;
        let seen = store.commit(Batch::new().put("/a", "1")).await.unwrap();
        let next = store.commit(Batch::new().put("/a", "2")).await.unwrap();
        drop(store);
        let store = open(&world, scratch.path()).await;
        assert_eq!(store.opened().revision, next);
        let mut feed = store.feed("/".into(), Some(seen)).await.unwrap();
        let Event::Commit(commit) = feed.next().await.unwrap() else {
            panic!("a mark that was not asked for")
        };
        assert_eq!(commit.revision, next);
        assert_eq!(commit.changes[0].previous.as_ref().unwrap().value, "1");
    })
    .unwrap();
}

#[test]
fn endless_overwriting_keeps_disk_and_memory_bounded() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let options = Options {
            limits: Limits { changes: 500, bytes: 4 << 20, live_bytes: u64::MAX },
            segment_bytes: 1 << 20,
            progress: None,
        };
        let store = Arc::new(Embedded::open(&world, scratch.path(), options).await.unwrap());
        let writers = (0..32).map(|writer| {
            let store = Arc::clone(&store);
            world.spawn("writer", async move {
                for number in 0..300_u32 {
                    let value = vec![number as u8; 8 << 10];
                    store.commit(Batch::new().put(format!("/{writer}"), value)).await.unwrap();
                }
            })
        });
        let mut largest = 0;
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
            largest = largest.max(disk_usage(scratch.path()));
        }
        let written = 32 * 300 * (8 << 10);
        assert!(written > 70 << 20);
        assert!(largest < 16 << 20, "{largest} bytes on disk for 256 KiB that live, after {written} written");
        // Memory holds live data and the window: versions overwritten before its 500 changes are dropped as
        // soon as no checkpoint reads them.
        let forgotten = async {
            loop {
                let head = store.commit(Batch::new().put("/0", vec![1; 8 << 10])).await.unwrap();
                match store.feed("/".into(), Some(Revision(head.0 - 501))).await {
                    Ok(_) => {}
                    Err(Error::Compacted { .. }) => return head,
                    Err(other) => panic!("{other}"),
                }
            }
        };
        let head = world.timeout(Duration::from_secs(20), forgotten).await.expect("the window moves on");
        store.feed("/".into(), Some(Revision(head.0 - 400))).await.unwrap();
    })
    .unwrap();
}

fn disk_usage(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap().filter_map(Result::ok);
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

#[test]
fn opening_reports_progress() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let store = open(&world, scratch.path()).await;
        for page in 0..40_u8 {
            let batch = (0..100)
                .fold(Batch::new(), |batch, at| batch.put(format!("/{page}/{at}"), vec![page; 10_000]));
            store.commit(batch).await.unwrap();
        }
        drop(store);
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&reports);
        let progress: Box<dyn FnMut(store::Progress) + Send> =
            Box::new(move |progress| reported.lock().unwrap().push((progress.done, progress.total)));
        let options = Options { progress: Some(progress), ..Options::default() };
        Embedded::open(&world, scratch.path(), options).await.unwrap();
        let reports = reports.lock().unwrap();
        assert!(reports.len() >= 5, "{reports:?}");
        assert!(reports.is_sorted() && reports[0].0 == 0, "{reports:?}");
        let (done, total) = reports.last().unwrap();
        assert_eq!(done, total);
    })
    .unwrap();
}

#[test]
fn a_restored_directory_goes_on_where_the_backup_was_made() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
        let backup = scratch.path().join("backup");
        let store = open(&world, &first).await;
        let batch = (0..100).fold(Batch::new(), |batch, at| batch.put(format!("/{at}"), vec![at; 5000]));
        store.commit(batch).await.unwrap();
        let revision = store.backup(backup.clone()).await.unwrap();
        assert_eq!(Embedded::restore(&world, &backup, &second).await.unwrap(), revision);
        let restored = open(&world, &second).await;
        let all = |page: store::Page| (page.entries, page.revision);
        let expected = all(store.range(Range::all()).await.unwrap());
        assert_eq!(all(restored.range(Range::all()).await.unwrap()), expected);
        assert_eq!(restored.commit(Batch::new().put("/new", "")).await.unwrap().0, revision.0 + 1);
        drop(restored);
        // Neither into a directory in use, nor from a truncated file.
        assert!(Embedded::restore(&world, &backup, &second).await.is_err());
        let mut damaged = std::fs::OpenOptions::new().append(true).open(&backup).unwrap();
        damaged.write_all(b"x").unwrap();
        let refused = Embedded::restore(&world, &backup, &scratch.path().join("third")).await.unwrap_err();
        assert!(matches!(refused, Error::Corrupt(_)), "{refused}");
    })
    .unwrap();
}
