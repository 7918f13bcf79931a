//! `fuzz TARGET`: searches for an input that breaks a target, or replays one.

#![expect(clippy::print_stdout, reason = "it talks to people")]

use anyhow::{Context, Result, bail};
use clap::Parser;
use fuzz::{Budget, Search, TARGETS, Target, replay, target};
use std::{fs, path::PathBuf, process::ExitCode, time::Duration};
use world::World;

/// Searches for an input that breaks a target. Without a target: all of them, one after the other.
#[derive(Debug, Parser)]
#[command(name = "fuzz")]
struct Arguments {
    target: Option<String>,
    /// How long to search, per target
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The first seed; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Replays this one input
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Folder for inputs that break a target
    #[arg(long, default_value = "target/fuzz/found")]
    found: PathBuf,
}

/// The stack of a thread that serves requests: input that overflows it there must do so here.
const STACK_BYTES: usize = 2 * 1024 * 1024;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let clock = fuzz::clock()?;
    let work = move || search_all(&clock, &arguments);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
    thread.join().unwrap_or_else(|_| bail!("the search itself is broken"))
}

fn search_all(world: &World, arguments: &Arguments) -> Result<ExitCode> {
    let names = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let targets: Vec<&'static Target> = match &arguments.target {
        Some(name) => {
            vec![target(name).with_context(|| format!("no target {name}; there are: {}", names()))?]
        }
        None => TARGETS.iter().collect(),
    };
    let mut broken = 0;
    for target in targets {
        if let Some(file) = &arguments.replay {
            match replay(target, &fs::read(file)?) {
                Some(complaint) => bail!("{}: {complaint}", target.name),
                None => println!("{}: holds", target.name),
            }
        } else if !search(world, target, arguments)? {
            broken += 1;
        }
    }
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the property held.
fn search(world: &World, target: &'static Target, arguments: &Arguments) -> Result<bool> {
    fs::create_dir_all(&arguments.found)?;
    let seed = arguments.seed.unwrap_or_else(|| world.draw() >> 1);
    let under_test = arguments.found.join(format!("{}.last", target.name));
    let mut search = Search::new(target);
    search.note = Some(fs::File::create(&under_test)?);
    println!("{}: seed {seed}, noting inputs in {}", target.name, under_test.display());
    let outcome = search.run(world, seed, Budget::Time(Duration::from_secs_f64(arguments.minutes * 60.0)));
    let (branches, kept) = search.progress();
    println!(
        "{}: {} inputs, {branches} branches, {kept} inputs worth keeping, at most {} KiB for one",
        target.name,
        search.cases,
        search.peak >> 10
    );
    fs::remove_file(under_test)?;
    let Err(found) = outcome else { return Ok(true) };
    let file = arguments.found.join(format!("{}-{seed}", target.name));
    fs::write(&file, &found.input)?;
    println!(
        "{}: BROKEN by {}\n  input: {}\n  {}",
        target.name,
        file.display(),
        found.input.escape_ascii(),
        found.complaint
    );
    Ok(false)
}
