//! A handle on a concurrent task, the same for real and simulated worlds.

use futures::{
    FutureExt,
    future::{AbortHandle, Abortable},
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::oneshot;

/// A running task. Await it for its result; drop it to cancel it; [`Task::detach`] lets it run on by itself.
#[derive(Debug)]
#[must_use = "dropping a task cancels it: await it, keep it, or detach it"]
pub struct Task<T> {
    output: oneshot::Receiver<T>,
    cancel: Option<AbortHandle>,
}

/// The task was cancelled or panicked, and has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task stopped before its end")]
pub struct Stopped;

impl<T> Task<T> {
    /// Lets the task run on without its handle.
    pub fn detach(mut self) {
        self.cancel = None;
    }

    pub fn cancel(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.abort();
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, Stopped>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.output.poll_unpin(context).map_err(|_| Stopped)
    }
}

/// Splits `work` into the future for the executor and the handle for the caller.
pub(crate) fn split<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> (impl Future<Output = ()> + Send + 'static, Task<T>) {
    let (sender, output) = oneshot::channel();
    let (cancel, registration) = AbortHandle::new_pair();
    let body = Abortable::new(work, registration).map(|ended| {
        if let Ok(value) = ended {
            // The handle may have been dropped; then the result is not needed.
            drop(sender.send(value));
        }
    });
    (body, Task { output, cancel: Some(cancel) })
}
