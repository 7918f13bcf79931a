//! `cargo xtask bench size`: the size of the binary, its memory and its start, each against a limit. It fails beyond one.

use crate::{cluster, tools};
use anyhow::{Context, Result, bail};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

/// Code and data of the release build, without line numbers for backtraces. It has 65: a tenth of room, so that a
/// dependency of more than that is a decision.
const MOST_CODE: f64 = 72.0;
/// What the design promises for a cold start; in milliseconds.
const MOST_START: f64 = 100.0;
/// Memory of its own, when idle with all control loops and a node. It has 12: half as much again, because it must fit
/// beside the tests of many projects.
const MOST_OWN: f64 = 18.0;
/// With the used pages of the program, which the system can drop. `bench server starts` has the goal of the smaller
/// `dist` build.
const MOST_RESIDENT: f64 = 60.0;
/// The fastest counts: other work of the machine can only slow a start down.
const STARTS: usize = 5;
/// Until the work of a start is done.
const IDLE: Duration = Duration::from_secs(5);
const MEGABYTE: f64 = 1e6;

/// ELF: a part of the file that is loaded into memory.
const PT_LOAD: u64 = 1;

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask bench size; SETPOINT_BINARY names another build than the release one");
    }
    let binary = cluster::build_setpoint()?;
    let folder = tools::root()?.join("target/size");
    let bytes = fs::read(&binary).with_context(|| format!("cannot read {}", binary.display()))?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(Up::start(&binary, &folder)?.took.as_secs_f64() * 1e3);
    }
    let idle = Up::start(&binary, &folder)?;
    std::thread::sleep(IDLE);
    let [own, resident] = ["RssAnon:", "VmRSS:"].map(|field| memory(idle.process.id(), field));
    let (own, resident) = (own? / MEGABYTE, resident? / MEGABYTE);
    let fastest = starts.iter().copied().fold(f64::INFINITY, f64::min);
    let code = loaded(&bytes).context("it is no ELF file of 64 bits")? as f64 / MEGABYTE;
    println!("{} ({:.0} MB with line numbers)", binary.display(), bytes.len() as f64 / MEGABYTE);
    let measured = [
        ("code and data", code, MOST_CODE, "MB"),
        ("start to ready, the fastest", fastest, MOST_START, "ms"),
        ("own memory when idle", own, MOST_OWN, "MB"),
        ("with pages of the program", resident, MOST_RESIDENT, "MB"),
    ];
    for (what, value, most, unit) in measured {
        let verdict = if value <= most { "met" } else { "MISSED" };
        println!("  {what:<28} {value:>7.1} {unit}, at most {most:>4.0}   {verdict}");
    }
    let is_met = measured.iter().all(|(_, value, most, _)| value <= most);
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A running `setpoint up`, ended when this is dropped.
struct Up {
    process: Child,
    took: Duration,
}

impl Up {
    /// With an empty folder for its data.
    fn start(binary: &Path, folder: &Path) -> Result<Up> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        let begun = Instant::now();
        let mut command = Command::new(binary);
        command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder);
        let process = command.stdout(Stdio::piped()).spawn().context("cannot start setpoint")?;
        let mut up = Up { process, took: Duration::ZERO };
        let output = BufReader::new(up.process.stdout.take().context("what setpoint says")?);
        for line in output.lines() {
            if line?.starts_with("ready ") {
                up.took = begun.elapsed();
                return Ok(up);
            }
        }
        bail!("setpoint ended before it was ready")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Memory of a process in bytes, as a field of its status has it.
fn memory(process: u32, field: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0)
}

/// The bytes of an ELF file of 64 bits that are loaded.
fn loaded(file: &[u8]) -> Option<u64> {
    let number = |at: usize, size: usize| {
        let bytes = file.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    file.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    // Offsets of the ELF header: e_phoff, e_phentsize, e_phnum; then of an entry: p_type, p_filesz.
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut sum = 0;
    for entry in 0..count {
        let at = usize::try_from(table + entry * size).ok()?;
        if number(at, 4)? == PT_LOAD {
            sum += number(at + 32, 8)?;
        }
    }
    Some(sum)
}

#[test]
fn the_loaded_part_of_a_program_is_smaller_than_its_file() {
    let file = fs::read("/proc/self/exe").unwrap();
    let code = loaded(&file).unwrap();
    assert!(code > 0 && code < file.len() as u64, "{code}");
    assert_eq!(loaded(b"#!/bin/sh"), None);
}
