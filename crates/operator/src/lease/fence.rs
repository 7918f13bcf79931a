//! Refuses the writes of a manager that does not hold its lease.

use crate::{BoxError, client};
use http::Method;
use kube::Client;
use std::sync::{Arc, Mutex, PoisonError};
use world::{Moment, World};

/// Open while this process may write. Clones share one state.
#[derive(Clone, Debug)]
pub struct Fence {
    world: World,
    gate: Arc<Mutex<Gate>>,
}

#[derive(Clone, Copy, Debug)]
enum Gate {
    /// There is no election.
    Open,
    OpenUntil(Moment),
    Shut,
}

/// A write was refused: this process does not lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the lease: nothing was written")]
pub struct NotLeading;

impl Fence {
    /// A fence that lets everything pass, until a [`Candidate`](super::Candidate) gets it.
    pub fn open(world: &World) -> Fence {
        Fence { world: world.clone(), gate: Arc::new(Mutex::new(Gate::Open)) }
    }

    /// Whether this process may write now.
    pub fn lets_pass(&self) -> bool {
        match *self.gate.lock().unwrap_or_else(PoisonError::into_inner) {
            Gate::Open => true,
            Gate::OpenUntil(moment) => self.world.now() < moment,
            Gate::Shut => false,
        }
    }

    pub(crate) fn shut(&self) {
        self.set(Gate::Shut);
    }

    pub(crate) fn open_until(&self, moment: Moment) {
        self.set(Gate::OpenUntil(moment));
    }

    fn set(&self, gate: Gate) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate;
    }

    /// A client whose writes must pass this fence.
    pub(crate) fn around(&self, client: Client) -> Client {
        let fence = self.clone();
        client::through(&client, move |client, request| {
            let fence = fence.clone();
            async move {
                let is_read = [Method::GET, Method::HEAD].contains(request.method());
                if !is_read && !fence.lets_pass() {
                    return Err(BoxError::from(NotLeading));
                }
                client.send(request).await.map_err(BoxError::from)
            }
        })
    }
}
