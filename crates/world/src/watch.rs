//! A value that tasks wait for: one sender, many receivers that see the latest value.
//!
//! As tokio's channel of this name, but receivers wake in the order in which they subscribed. Tokio's wake in
//! a random order, so that the same seed would not give the same run.

use std::{
    collections::BTreeMap,
    fmt,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

/// The end that sets the value. Receivers learn when it is dropped.
pub struct Sender<T>(Arc<Channel<T>>);

/// An end that sees the value.
pub struct Receiver<T> {
    channel: Arc<Channel<T>>,
    /// Its place among the receivers.
    place: u64,
    /// The version that it has seen.
    seen: u64,
}

/// The sender is gone, and nothing changes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sender is gone")]
pub struct Closed;

struct Channel<T>(Mutex<ChannelState<T>>);

struct ChannelState<T> {
    value: T,
    /// Rises with each change, and is never 0.
    version: u64,
    is_closed: bool,
    next_place: u64,
    receivers: usize,
    waiting: BTreeMap<u64, Waker>,
}

impl<T> Channel<T> {
    fn state(&self) -> MutexGuard<'_, ChannelState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes all receivers outside of the lock.
    fn change(&self, change: impl FnOnce(&mut ChannelState<T>)) {
        let woken = {
            let mut state = self.state();
            change(&mut state);
            mem::take(&mut state.waiting)
        };
        woken.into_values().for_each(Waker::wake);
    }

    fn receiver(self: &Arc<Self>, seen: Option<u64>) -> Receiver<T> {
        let mut state = self.state();
        state.receivers += 1;
        state.next_place += 1;
        let (place, seen) = (state.next_place, seen.unwrap_or(state.version));
        drop(state);
        Receiver { channel: Arc::clone(self), place, seen }
    }
}

impl<T> Sender<T> {
    pub fn new(value: T) -> Sender<T> {
        let state = ChannelState {
            value,
            version: 1,
            is_closed: false,
            next_place: 0,
            receivers: 0,
            waiting: BTreeMap::new(),
        };
        Sender(Arc::new(Channel(Mutex::new(state))))
    }

    /// A receiver that has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        self.0.receiver(None)
    }

    pub fn set(&self, value: T) {
        self.modify(|present| *present = value);
    }

    pub fn modify(&self, modify: impl FnOnce(&mut T)) {
        self.0.change(|state| {
            modify(&mut state.value);
            state.version += 1;
        });
    }

    pub fn receiver_count(&self) -> usize {
        self.0.state().receivers
    }
}

impl<T: Clone> Sender<T> {
    pub fn value(&self) -> T {
        self.0.state().value.clone()
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.change(|state| state.is_closed = true);
    }
}

impl<T> Receiver<T> {
    /// Waits for a value that this receiver has not seen.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        let seen = self.seen;
        self.wait(|state| state.version != seen).await
    }

    /// Waits until the value is as wanted; it may be so already.
    pub async fn wait_for(&mut self, is_wanted: impl Fn(&T) -> bool) -> Result<(), Closed> {
        self.wait(|state| is_wanted(&state.value)).await
    }

    /// The present value counts as unseen.
    pub fn mark_changed(&mut self) {
        self.seen = 0;
    }

    async fn wait(&mut self, is_done: impl Fn(&ChannelState<T>) -> bool) -> Result<(), Closed> {
        let seen = poll_fn(|context| {
            let mut state = self.channel.state();
            if is_done(&state) {
                return Poll::Ready(Ok(state.version));
            }
            if state.is_closed {
                return Poll::Ready(Err(Closed));
            }
            state.waiting.insert(self.place, context.waker().clone());
            Poll::Pending
        });
        self.seen = seen.await?;
        Ok(())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.channel.receiver(Some(self.seen))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.channel.state();
        state.receivers -= 1;
        state.waiting.remove(&self.place);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sender").field("receivers", &self.receiver_count()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Receiver").field("seen", &self.seen).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_receiver_sees_the_latest_value_once() {
        let sender = Sender::new(1);
        let mut receiver = sender.subscribe();
        assert_eq!(receiver.changed().now_or_never(), None);
        sender.set(2);
        sender.modify(|value| *value += 1);
        assert_eq!((sender.value(), receiver.changed().now_or_never()), (3, Some(Ok(()))));
        assert_eq!(receiver.changed().now_or_never(), None);
        receiver.mark_changed();
        assert_eq!(receiver.changed().now_or_never(), Some(Ok(())));
        assert_eq!(receiver.wait_for(|value| *value == 4).now_or_never(), None);
        assert_eq!(receiver.wait_for(|value| *value == 3).now_or_never(), Some(Ok(())));
    }

    #[test]
    fn receivers_learn_that_the_sender_is_gone_after_the_last_value() {
        let sender = Sender::new(false);
        let mut receiver = sender.subscribe();
        assert_eq!(sender.receiver_count(), 1);
        sender.set(true);
        drop(sender);
        assert_eq!(receiver.clone().wait_for(|value| *value).now_or_never(), Some(Ok(())));
        assert_eq!(receiver.changed().now_or_never(), Some(Ok(())));
        assert_eq!(receiver.changed().now_or_never(), Some(Err(Closed)));
    }

    #[test]
    fn receivers_wake_in_the_order_in_which_they_subscribed() {
        let orders = [(); 2].map(|()| {
            let run = crate::simulate(3, |world| async move {
                let (sender, order) = (Sender::new(false), Arc::new(Mutex::new(Vec::new())));
                let tasks: Vec<_> = (0..50)
                    .map(|number| {
                        let (mut receiver, order) = (sender.subscribe(), Arc::clone(&order));
                        world.spawn("receiver", async move {
                            receiver.wait_for(|value| *value).await.unwrap();
                            order.lock().unwrap().push(number);
                        })
                    })
                    .collect();
                world.sleep(std::time::Duration::from_secs(1)).await;
                sender.set(true);
                futures::future::join_all(tasks).await;
                mem::take(&mut *order.lock().unwrap())
            });
            run.unwrap().output
        });
        assert_eq!(orders[0].len(), 50);
        assert_eq!(orders[0], orders[1]);
    }
}
