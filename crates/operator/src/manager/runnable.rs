//! Work of your own that a manager runs beside its controllers.

use super::{Error, Manager};
use crate::{BoxError, cache::Caches, manager::halt::HaltFlag};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use kube::Client;
use std::fmt;
use world::World;

/// What work of your own may use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunnableContext {
    pub(super) world: World,
    pub(super) caches: Caches,
}

/// Work of your own, before it runs.
pub(super) struct Runnable {
    name: String,
    make: Box<dyn FnOnce(RunnableContext) -> BoxFuture<'static, Result<(), BoxError>> + Send>,
}

impl RunnableContext {
    /// The manager's client: see [`Context::client`](crate::Context::client).
    pub fn client(&self) -> Client {
        self.caches.client()
    }

    /// The manager's caches, which its controllers share.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Time, random numbers and tasks.
    pub fn world(&self) -> &World {
        &self.world
    }
}

impl Manager {
    /// Runs work of your own while this process leads: until it ends, or the manager does. Its error ends the
    /// manager.
    ///
    /// ```
    /// # let _ = |manager: operator::Manager| {
    /// use k8s_openapi::api::core::v1::Node;
    /// use kube::{Api, api::ListParams};
    /// use std::time::Duration;
    ///
    /// manager.runnable("count-nodes", |run| async move {
    ///     let nodes: Api<Node> = Api::all(run.client());
    ///     loop {
    ///         println!("{} nodes", nodes.list(&ListParams::default()).await?.items.len());
    ///         run.world().sleep(Duration::from_secs(3600)).await;
    ///     }
    /// })
    /// # };
    /// ```
    pub fn runnable<F, R>(mut self, name: &str, make: F) -> Manager
    where
        F: FnOnce(RunnableContext) -> R + Send + 'static,
        R: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.runnables.while_leading.push(Runnable::new(name, make));
        self
    }

    /// [`Manager::runnable`] that also runs while another process leads; then its client can only read.
    pub fn runnable_always<F, R>(mut self, name: &str, make: F) -> Manager
    where
        F: FnOnce(RunnableContext) -> R + Send + 'static,
        R: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.runnables.always.push(Runnable::new(name, make));
        self
    }
}

/// The runnables of a manager.
#[derive(Debug, Default)]
pub(super) struct Runnables {
    pub(super) while_leading: Vec<Runnable>,
    pub(super) always: Vec<Runnable>,
}

impl Runnable {
    fn new<F, R>(name: &str, make: F) -> Runnable
    where
        F: FnOnce(RunnableContext) -> R + Send + 'static,
        R: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        Runnable { name: name.to_owned(), make: Box::new(|context| make(context).boxed()) }
    }
}

/// Runs all of them, each as a task. Ends when all have ended, or with the first error.
pub(super) async fn run_all(
    runnables: Vec<Runnable>,
    context: &RunnableContext,
    halt: &HaltFlag,
) -> Result<(), Error> {
    let runs = runnables.into_iter().map(|Runnable { name, make }| {
        let task = context.world.spawn("runnable", halt.around(make(context.clone())));
        async move {
            // A panic is an error as well: the task has no result then.
            let ended = task.await.map_err(BoxError::from).flatten();
            ended.map_err(|source| Error::Runnable { name, source })
        }
    });
    try_join_all(runs).await.map(drop)
}

impl fmt::Debug for Runnable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Runnable({})", self.name)
    }
}
