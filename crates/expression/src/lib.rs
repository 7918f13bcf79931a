//! CEL as Kubernetes speaks it: text → tree → types → a program that runs within a budget.

#![expect(clippy::mutable_key_type, reason = "the order of keys depends on their immutable parts")]

// Types, values, errors, costs.
pub mod cost;
pub mod error;
pub mod ty;
pub mod value;

// Text → tree, macros expanded.
pub mod ast;
pub mod issues;
mod lexer;
mod literal;
mod macros;
mod parser;

// Names and functions; tree → types.
mod check;
pub mod environment;
pub mod library;

// Types → what a run may cost; types → code → value.
mod estimate;
mod evaluate;
mod plan;
pub mod program;

// The seam to the owners of schemas: types, sizes and views come from shapes.
pub mod declare;
pub mod escape;
pub mod shape;

// Operations on values: equality, text, times, numbers, patterns.
pub mod equality;
pub mod number;
pub mod pattern;
pub mod text;
pub mod time;

pub use declare::{Declared, NoSizes, Sizes};
pub use environment::Env;
pub use error::Error;
pub use issues::Issues;
pub use program::{Bindings, Checked, Program, Run};
pub use ty::Type;
pub use value::Value;
