//! The text of pages, and of what commands print.

pub(crate) mod level;
pub(crate) mod page;
