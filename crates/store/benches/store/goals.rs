//! The goals of a benchmark, and whether they are met.

use std::{fmt::Display, process::ExitCode};

/// Prints each goal with what was reached. A missed goal fails the program.
pub(crate) fn report<T: Display>(goals: &[(T, String, bool)]) -> ExitCode {
    println!("\ngoals");
    for (goal, reached, met) in goals {
        println!("  {goal:<64} {reached:>9}  {}", if *met { "met" } else { "MISSED" });
    }
    match goals.iter().filter(|(_, _, met)| !met).count() {
        0 => ExitCode::SUCCESS,
        missed => {
            println!("{missed} of {} goals missed", goals.len());
            ExitCode::FAILURE
        }
    }
}
