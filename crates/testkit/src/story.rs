//! What a failing test tells: its last requests, the file with all of them, and how to run it again.

use crate::{Cluster, Trace, run::SEED_VARIABLE, scratch};
use std::{
    cell::Cell,
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
    thread,
};

/// So many of the last requests are printed; the file has all.
const PRINTED: usize = 50;

thread_local! {
    /// How many stories this thread has told: a test may have several clusters.
    static TOLD: Cell<u32> = const { Cell::new(0) };
}

impl Cluster {
    /// Prints the story, and writes the trace to a file.
    #[expect(clippy::print_stderr, reason = "the requests explain the panic")]
    pub(crate) fn tell(&self) {
        let (trace, seed) = (self.trace(), self.world().seed());
        eprint!("{}", story(&trace, seed, write(&trace, seed)));
    }
}

fn story(trace: &Trace, seed: Option<u64>, file: io::Result<PathBuf>) -> String {
    let shown = trace.entries.len().saturating_sub(PRINTED);
    let mut text = match trace.forgotten + shown as u64 {
        0 => "the requests to the cluster:\n".to_owned(),
        before => format!("the last {PRINTED} requests to the cluster, after {before} others:\n"),
    };
    let mut add = |line: String| writeln!(text, "{line}").expect("a string can be written to");
    trace.entries[shown..].iter().for_each(|entry| add(entry.to_string()));
    match file {
        Ok(path) => add(format!("the whole trace: {}", path.display())),
        Err(error) => add(format!("the whole trace could not be written: {error}")),
    }
    if let Some(seed) = seed {
        let test = thread::current().name().unwrap_or_default().to_owned();
        add(format!("to run it again exactly: {SEED_VARIABLE}={seed} cargo test {test}"));
    }
    text
}

/// Writes the trace; a later failure of the same test replaces it.
fn write(trace: &Trace, seed: Option<u64>) -> io::Result<PathBuf> {
    let mut name = scratch::test_name();
    if let Some(seed) = seed {
        name.push_str(&format!("-seed-{seed}"));
    }
    let told = TOLD.replace(TOLD.get() + 1);
    if told > 0 {
        name.push_str(&format!("-{}", told + 1));
    }
    let path = scratch::directory()?.join(name + ".trace");
    scratch::create_private(&path)?.write_all(trace.to_string().as_bytes())?;
    Ok(path)
}
