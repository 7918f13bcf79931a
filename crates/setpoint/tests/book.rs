//! README and the book in `docs/guide`: their commands are typed in the order of the page, and what they print is
//! compared with what the page shows.

mod etcd;
mod kubectl;
mod terminal;
mod text;
