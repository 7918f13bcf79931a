//! The gate before all writes of a manager: who no longer leads, writes no longer.

use crate::BoxError;
use http::{Method, Request};
use kube::{Client, client::Body};
use std::sync::{Arc, Mutex, PoisonError};
use world::{Moment, World};

/// Open while this process may write. Clones share one gate.
#[derive(Clone, Debug)]
pub struct Fence {
    world: World,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nobody is elected: all may write.
    Open,
    Until(Option<Moment>),
}

/// A write was held back: this process does not lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the lease: nothing was written")]
pub struct NotLeading;

impl Fence {
    pub fn open(world: &World) -> Fence {
        Fence { world: world.clone(), state: Arc::new(Mutex::new(State::Open)) }
    }

    pub fn lets_pass(&self) -> bool {
        match *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open => true,
            State::Until(moment) => moment.is_some_and(|until| self.world.now() < until),
        }
    }

    pub(crate) fn shut(&self) {
        self.set(State::Until(None));
    }

    pub(crate) fn open_until(&self, moment: Moment) {
        self.set(State::Until(Some(moment)));
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// A client whose writes end at this fence.
    pub(crate) fn around(&self, client: Client) -> Client {
        let (fence, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, fence) = (client.clone(), fence.clone());
            async move {
                let is_read = [Method::GET, Method::HEAD].contains(request.method());
                if !is_read && !fence.lets_pass() {
                    return Err(BoxError::from(NotLeading));
                }
                client.send(request).await.map_err(BoxError::from)
            }
        });
        Client::new(service, namespace)
    }
}
