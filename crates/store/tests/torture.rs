//! A process that writes to an embedded store as fast as it can, and prints each acknowledged commit.
//!
//! `store-torture write DIR WRITERS` runs until it is killed, and prints `REVISION WRITER NUMBER` for each
//! acknowledged commit. `store-torture fill DIR` writes until the disk is full, and prints whether reads
//! still work.

use std::{io::Write, path::Path, sync::Arc};
use store::{Batch, Bytes, Embedded, Error, Limits, Options, ReadStore, Store};
use world::World;

/// So small that segments, checkpoints and recycling happen all the time.
const LIMITS: Limits = Limits { changes: 200, bytes: 1 << 20, live_bytes: u64::MAX };
const SEGMENT_BYTES: u64 = 256 << 10;
/// How many of its last commits a writer keeps in the store.
const KEPT: u64 = 50;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    world::run(|world| async move {
        match arguments[..] {
            ["write", directory, writers] => {
                let writers = writers.parse().expect("the number of writers");
                write(&world, Path::new(directory), writers).await;
            }
            ["fill", directory] => fill(&world, Path::new(directory)).await,
            _ => print("usage: store-torture write DIR WRITERS | fill DIR"),
        }
    })
    .expect("a runtime");
}

fn options() -> Options {
    Options { limits: LIMITS, segment_bytes: SEGMENT_BYTES, progress: None }
}

fn print(line: &str) {
    // Written without a buffer: a printed line survives a kill.
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).expect("the parent reads stdout");
}

async fn write(world: &World, directory: &Path, writers: u64) {
    let store = Arc::new(Embedded::open(world, directory, options()).await.expect("the store opens"));
    let writers = (0..writers).map(|writer| {
        let store = Arc::clone(&store);
        world.spawn("writer", async move {
            let last = store.get(last_key(writer), None).await.expect("a read").entry;
            let last = last.map_or(0, |entry| number(&entry.value));
            for number in last + 1.. {
                let mut batch = Batch::new()
                    .create(key(writer, number), value(writer, number))
                    .put(last_key(writer), number.to_string());
                if number > KEPT {
                    batch = batch.delete(key(writer, number - KEPT));
                }
                let revision = store.commit(batch).await.expect("a commit");
                print(&format!("{revision} {writer} {number}"));
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("writers write until they are killed");
    }
}

async fn fill(world: &World, directory: &Path) {
    let store = Embedded::open(world, directory, options()).await.expect("the store opens");
    for number in 1.. {
        match store.commit(Batch::new().create(key(0, number), value(0, number))).await {
            Ok(_) => {}
            Err(Error::Full { .. }) => {
                let read = store
                    .get(key(0, 1), None)
                    .await
                    .expect("reads go on")
                    .entry
                    .expect("the first commit is there");
                assert_eq!(read.value, value(0, 1));
                return print(&format!("full after {}", number - 1));
            }
            Err(other) => return print(&format!("another error: {other}")),
        }
    }
}

pub(crate) fn key(writer: u64, number: u64) -> Bytes {
    format!("/k/{writer}/{number:012}").into()
}

pub(crate) fn last_key(writer: u64) -> Bytes {
    format!("/last/{writer}").into()
}

/// Bytes of a length and content that only this commit has.
pub(crate) fn value(writer: u64, number: u64) -> Bytes {
    let seed = writer.wrapping_mul(31).wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let length = 50 + seed % 3000;
    (0..length).map(|at| (seed.rotate_left((at % 64) as u32) ^ at) as u8).collect::<Vec<_>>().into()
}

pub(crate) fn number(value: &[u8]) -> u64 {
    str::from_utf8(value).expect("digits").parse().expect("a number")
}
