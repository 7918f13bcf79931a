//! Searches for an input that breaks a target, and shrinks it.

use crate::{Target, counted::Meter, mutate, reach};
use std::{
    cell::Cell,
    fs::File,
    os::unix::fs::FileExt,
    panic::{self, AssertUnwindSafe},
    sync::Once,
    time::Duration,
};
use world::World;

/// Inputs per seed; then the clock is checked and the next seed begins.
const CASES_OF_A_SEED: u64 = 200;

/// The most inputs kept for reaching new code; beyond it the oldest is dropped.
const MAX_KEPT: usize = 5000;

/// The most attempts to shrink a failing input.
const MAX_CUTS: usize = 2000;

/// An input that takes longer counts as a failure, too: nothing here should take a millisecond.
const TOO_LONG: Duration = Duration::from_secs(10);

/// How long to look.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    Time(Duration),
    Cases(u64),
}

/// An input that breaks a target.
#[derive(Debug)]
pub struct Found {
    pub input: Vec<u8>,
    pub complaint: String,
}

#[derive(Debug)]
pub struct Search {
    target: &'static Target,
    inputs: Vec<Vec<u8>>,
    first_kept: usize,
    reached: reach::Reached,
    /// The file with the input under test: after a stack overflow nothing else is left.
    pub note: Option<File>,
    pub cases: u64,
    /// The most memory that one input took, in bytes.
    pub peak: usize,
}

impl Search {
    pub fn new(target: &'static Target) -> Search {
        let inputs = (target.seeds)();
        let first_kept = inputs.len();
        Search {
            target,
            inputs,
            first_kept,
            reached: reach::Reached::default(),
            note: None,
            cases: 0,
            peak: 0,
        }
    }

    /// Tries every seed unchanged, then mutations of them.
    pub fn run(&mut self, clock: &World, first_seed: u64, budget: Budget) -> Result<(), Box<Found>> {
        let start = clock.now();
        let is_over = |cases: u64| match budget {
            Budget::Cases(all) => cases >= all,
            Budget::Time(time) => clock.now().since(start) >= time,
        };
        for input in self.inputs.clone() {
            if is_over(self.cases) {
                break;
            }
            self.attempt(clock, &input)?;
        }
        for seed in first_seed.. {
            if is_over(self.cases) {
                break;
            }
            let (inputs, words) = (&self.inputs, self.target.words);
            let batch = world::simulate(seed, |chance| async move {
                (0..CASES_OF_A_SEED).map(|_| mutate::mutate(&chance, inputs, words)).collect::<Vec<_>>()
            });
            for input in batch.map(|run| run.output).unwrap_or_default() {
                if is_over(self.cases) {
                    break;
                }
                self.attempt(clock, &input)?;
            }
        }
        Ok(())
    }

    /// The branches reached so far, and the inputs that reached one first.
    pub fn progress(&self) -> (usize, usize) {
        (self.reached.branches(), self.inputs.len() - self.first_kept)
    }

    fn attempt(&mut self, clock: &World, input: &[u8]) -> Result<(), Box<Found>> {
        self.cases += 1;
        if let Some(note) = &self.note {
            // If writing the note fails, the search goes on without it.
            drop(note.set_len(input.len() as u64).and_then(|()| note.write_all_at(input, 0)));
        }
        reach::clear();
        let start = clock.now();
        match check(self.target, input) {
            Ok(memory) => self.peak = self.peak.max(memory),
            Err(complaint) => {
                let input = smaller(self.target, input);
                let complaint = replay(self.target, &input).unwrap_or(complaint);
                return Err(Box::new(Found { input, complaint }));
            }
        }
        let took = clock.now().since(start);
        if took > TOO_LONG {
            let complaint = format!("took {took:?}");
            return Err(Box::new(Found { input: input.to_vec(), complaint }));
        }
        if self.reached.is_new() {
            if self.inputs.len() - self.first_kept >= MAX_KEPT {
                self.inputs.remove(self.first_kept);
            }
            self.inputs.push(input.to_vec());
        }
        Ok(())
    }
}

/// Runs one input; returns the panic message if the target fails.
pub fn replay(target: &Target, input: &[u8]) -> Option<String> {
    check(target, input).err()
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The peak memory of an input, in bytes, or the panic message of the target.
fn check(target: &Target, input: &[u8]) -> Result<usize, String> {
    silence_target_panics();
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let meter = Meter::start();
        (target.check)(input);
        // No input may take more memory than a request of its size may.
        meter.assert_modest(input.len(), target.name);
        meter.most()
    }));
    QUIET.set(false);
    outcome.map_err(|panicked| {
        let text = panicked.downcast_ref::<String>().cloned();
        text.or_else(|| panicked.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })
}

/// Keeps panics of targets off the terminal: the report shows the last one.
fn silence_target_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if !QUIET.get() {
                usual(panicked);
            }
        }));
    });
}

/// Cuts pieces out of a failing input as long as it fails without them.
fn smaller(target: &Target, input: &[u8]) -> Vec<u8> {
    let mut input = input.to_vec();
    let mut piece = input.len() / 2;
    let mut cuts = 0;
    while piece > 0 {
        let mut at = 0;
        while at < input.len() && cuts < MAX_CUTS {
            let mut shorter = input.clone();
            shorter.drain(at..(at + piece).min(input.len()));
            cuts += 1;
            if check(target, &shorter).is_err() {
                input = shorter;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_target_is_detected_with_a_small_input() {
        static BROKEN: Target = Target {
            name: "broken",
            check: |input| assert!(!input.windows(2).any(|pair| pair == b"xy"), "there is an xy"),
            seeds: || vec![b"aaaaaaaaaa".to_vec(), b"bbbbbbbb".to_vec()],
            words: &["x", "y"],
        };
        let clock = crate::clock().unwrap();
        let found = Search::new(&BROKEN).run(&clock, 1, Budget::Cases(100_000)).unwrap_err();
        assert_eq!((found.input.as_slice(), found.complaint.as_str()), (b"xy".as_slice(), "there is an xy"));
    }
}
