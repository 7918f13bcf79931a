//! Fuzzing: properties that must hold for any input, seeds, and a mutator that searches for inputs that break
//! one.
//!
//! A target is a function of bytes that panics when a property fails. `cargo test -p fuzz` runs each for a
//! moment; `cargo xtask fuzz TARGET --minutes N` runs longer, guided by code coverage.
//!
//! A new target is one file in `targets/` and one line in its table.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a target that panics has found something")]

#[path = "../../server/tests/counted.rs"]
#[expect(dead_code, reason = "only the tests of the server use the rest")]
mod counted;
mod mutate;
mod reach;
mod recorded;
mod search;
mod targets;

pub use search::{Budget, Found, Search, replay};
pub use targets::TARGETS;

/// A property of all inputs.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// Panics if the property fails.
    pub check: fn(&[u8]),
    /// Valid inputs for the mutator to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that are significant in inputs of this target.
    pub words: &'static [&'static str],
}

/// A real world for its clock and random numbers only: targets start their own worlds, which cannot be
/// nested.
pub fn clock() -> std::io::Result<world::World> {
    world::run(|world| async { world })
}

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
