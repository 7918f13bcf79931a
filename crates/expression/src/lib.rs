//! CEL as Kubernetes speaks it: text → tree → types → a program that runs within a budget.

pub mod ty; // what an expression may be
pub mod value; // what it is while it runs
pub mod error; // why it failed
pub mod cost; // what it takes
pub mod issues; // what is wrong with its text
mod lexer; // text → tokens
mod literal; // what a literal means
pub mod ast; // the tree
mod macros; // calls that are rewritten
mod parser; // tokens → tree
mod check; // tree → types
pub mod library; // functions, as data
pub mod environment; // names and libraries
pub mod program; // what is checked, and what runs
mod estimate; // what a run may cost
mod plan; // types → code
mod evaluate; // code → value
pub mod equality; // which values are the same
pub mod number; // numbers as text
pub mod time; // durations and timestamps
pub mod text; // values as text
pub mod shape; // what a schema says
pub mod declare; // schema → types and sizes
pub mod escape; // how property names are spelled
pub mod pattern; // Go regular expressions

pub use declare::{Declared, NoSizes, Sizes};
pub use environment::Env;
pub use error::Error;
pub use issues::Issues;
pub use program::{Bindings, Checked, Program, Run};
pub use ty::Type;
pub use value::Value;
