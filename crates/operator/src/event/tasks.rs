//! The tasks that write the events of one manager: they write what is left when it stops, and nothing when it is dropped.

use super::{NewEvent, Recorder, core_correlator::CoreCorrelator, correlator::Correlator, writer::EventApi};
use crate::manager::HaltFlag;
use futures::{FutureExt, future::join_all};
use kube::Client;
use std::{
    mem::take,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc;
use world::{Task, World};

/// Clones share the tasks.
#[derive(Clone, Debug)]
pub(crate) struct EventTasks {
    world: World,
    halt: HaltFlag,
    tasks: Arc<Mutex<Vec<EventTask>>>,
}

#[derive(Debug)]
struct EventTask {
    queue: mpsc::WeakSender<Option<NewEvent>>,
    task: Task<()>,
}

impl EventTasks {
    pub(crate) fn new(world: &World, halt: &HaltFlag) -> EventTasks {
        EventTasks { world: world.clone(), halt: halt.clone(), tasks: Arc::default() }
    }

    /// [`Recorder::new`], whose task ends with the manager.
    pub(crate) fn recorder(&self, client: Client, controller: &str, instance: &str) -> Recorder {
        self.start::<Correlator>(client, controller, instance)
    }

    /// [`Recorder::core_on`], whose task ends with the manager.
    pub(crate) fn core_recorder(&self, client: Client, component: &str, host: &str) -> Recorder {
        self.start::<CoreCorrelator>(client, component, host)
    }

    fn start<A: EventApi>(&self, client: Client, controller: &str, instance: &str) -> Recorder {
        let (recorder, work) = Recorder::with_writer::<A>(&self.world, client, controller, instance);
        let task = self.world.spawn("events", self.halt.around(work));
        let queue = recorder.queue.downgrade();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose recorders are gone: a manager may make recorders as long as it runs.
        tasks.retain_mut(|it| (&mut it.task).now_or_never().is_none());
        tasks.push(EventTask { queue, task });
        recorder
    }

    /// Writes what has been recorded so far, and ends; after `limit` at the latest.
    pub(crate) async fn finish(&self, limit: Duration) {
        let writers = self.take().into_iter().map(async |EventTask { queue, task }| {
            if let Some(queue) = queue.upgrade() {
                // An error: the task has ended already.
                drop(queue.send(None).await);
            }
            _ = task.await;
        });
        if self.world.timeout(limit, join_all(writers)).await.is_err() {
            tracing::debug!(?limit, "events not written in time");
        }
    }

    /// Ends at once.
    pub(crate) fn cancel(&self) {
        drop(self.take());
    }

    fn take(&self) -> Vec<EventTask> {
        take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
