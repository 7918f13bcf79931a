//! Ends the reconciles and runnables of a dropped manager: no code of theirs runs any more.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

/// Raised when a running manager is dropped. Its tasks are cancelled then, but the executor may poll them before it
/// drops them.
#[derive(Clone, Debug, Default)]
pub(crate) struct HaltFlag(Arc<AtomicBool>);

impl HaltFlag {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// `work`, which goes no further once the flag is raised.
    pub(crate) fn around<W: Future>(&self, work: W) -> impl Future<Output = W::Output> + use<W> {
        let is_raised = Arc::clone(&self.0);
        async move {
            let mut work = pin!(work);
            let next = poll_fn(|context| match is_raised.load(Ordering::SeqCst) {
                true => Poll::Pending,
                false => work.as_mut().poll(context),
            });
            next.await
        }
    }
}
