//! Simulates pods: the cheap ones where they are asked for, the others beside the threads that serve sockets.

use crate::{
    budget::{FULL, SHORT},
    simulation::{Simulation, is_large},
};
use k8s_openapi::api::core::v1::Pod;
use std::{num::NonZero, thread::available_parallelism};
use tokio::sync::Semaphore;
use world::World;

/// Limits how much is computed at once.
#[derive(Debug)]
pub(crate) struct Workshop {
    places: Semaphore,
}

impl Default for Workshop {
    fn default() -> Workshop {
        // The other half of the processors is for those who want an answer.
        let processors = available_parallelism().map_or(1, NonZero::get);
        Workshop { places: Semaphore::new((processors / 2).max(1)) }
    }
}

impl Workshop {
    /// What `work` finds out of a pod. It is called again with a larger budget when the first one is used up.
    pub(crate) async fn simulate<T>(
        &self,
        world: &World,
        pod: &Pod,
        work: impl Fn(&Simulation<'_>) -> T,
    ) -> T {
        match try_briefly(pod, &work) {
            Some(done) => done,
            None => self.compute(world, || work(&Simulation::new(pod, FULL))).await,
        }
    }

    /// Does what takes long.
    pub(crate) async fn compute<T>(&self, world: &World, work: impl FnOnce() -> T) -> T {
        let _place = self.places.acquire().await;
        world.long(work)
    }
}

fn try_briefly<T>(pod: &Pod, work: impl Fn(&Simulation<'_>) -> T) -> Option<T> {
    if is_large(pod) {
        return None;
    }
    let simulation = Simulation::new(pod, SHORT);
    let done = work(&simulation);
    (!simulation.is_over_budget()).then_some(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::{cell::RefCell, sync::Arc};

    /// The budgets with which the course of a container is computed.
    fn efforts(script: &str, entries: usize) -> Vec<bool> {
        let env: Vec<_> = (0..entries).map(|at| json!({"name": format!("A{at}")})).collect();
        let container = json!({"name": "c", "command": ["sh", "-c", script], "env": env});
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {}, "spec": {"containers": [container]}})).unwrap();
        let run = world::simulate(1, |world| async move {
            let seen = RefCell::new(Vec::new());
            let workshop = Workshop::default();
            let look = |simulation: &Simulation<'_>| {
                simulation.course(0, 0, &Arc::default());
                seen.borrow_mut().push(simulation.is_over_budget());
            };
            workshop.simulate(&world, &pod, look).await;
            seen.take()
        });
        run.unwrap().output
    }

    #[test]
    fn only_what_is_cheap_is_computed_at_once() {
        assert_eq!(efforts("for i in 1 2 3; do echo $i; sleep 1; done", 9), [false]);
        // Once briefly, once in full.
        let costly = format!("while true; do touch {}; sleep 1; done", "/tmp/a ".repeat(100));
        assert_eq!(efforts(&costly, 9), [true, false]);
        // At once in full.
        assert_eq!(efforts("true", 1000), [false]);
    }
}
