//! What must hold for any input: targets, seeds, and a mutator that looks for the input that breaks one.
//!
//! A target is a function of bytes that panics when something is wrong. `cargo test -p fuzz` runs each for a moment;
//! `cargo xtask fuzz TARGET --minutes N` for as long as asked, guided by the code that inputs reach.
//!
//! A new target is one file in `targets/` and one line in its table.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a target that panics has found something")]

#[path = "../../server/tests/counted.rs"]
#[expect(dead_code, reason = "the tests of the server ask for more")]
mod counted;
mod mutate;
mod reach;
mod recorded;
mod search;
mod targets;

pub use search::{Budget, Found, Search, replay};
pub use targets::TARGETS;

/// Something that must hold whatever the bytes are.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// Panics where it does not hold.
    pub check: fn(&[u8]),
    /// Inputs that make sense, for the mutator to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// What decides in inputs of this sort.
    pub words: &'static [&'static str],
}

/// A real world for its clock and its chance alone: targets start worlds of their own, which cannot lie in another.
pub fn clock() -> std::io::Result<world::World> {
    world::run(|world| async { world })
}

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
