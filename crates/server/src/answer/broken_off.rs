//! Tells the connection that a body has ended before its end, so that the client does not take it for whole.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// An extension of a response whose body comes from elsewhere. A body itself cannot fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct BrokenOff(Arc<AtomicBool>);

impl BrokenOff {
    pub(crate) fn note(&self) {
        self.0.store(true, Relaxed);
    }

    pub(crate) fn is_noted(&self) -> bool {
        self.0.load(Relaxed)
    }
}
