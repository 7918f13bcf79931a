//! Lets programs outside of the test into its cluster: kubectl over a real socket, while the test waits.
//!
//! The socket has a thread of its own, in real time, which only reads requests and writes responses. The
//! simulation carries them out, on its one thread as ever, while the test is in [`Cluster::outside`] or
//! [`Cluster::pause`]. Virtual time follows the clock on the wall meanwhile.

mod kubeconfig;
mod relay;
mod socket;

use crate::Cluster;
use futures::poll;
use relay::Arrived;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError},
    },
    task::Poll,
    time::Duration,
};
use tokio::sync::oneshot;
use world::World;

/// How often the simulation looks for requests; virtual time then goes on by as much.
const TICK: Duration = Duration::from_millis(10);
/// The virtual time between two requests, as virtual time passes only when every task waits.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(1);
/// How often a paused test looks whether its kubeconfig is still there.
const LOOK_FOR_FILE: Duration = Duration::from_millis(100);

/// The open socket of a cluster. Dropped, it is closed, and its kubeconfig is removed.
pub(crate) struct Outside {
    /// The world of the socket's thread.
    real: World,
    arrivals: Arc<Mutex<Receiver<Arrived>>>,
    kubeconfig: PathBuf,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Outside {
    fn open() -> io::Result<Outside> {
        let socket::Opened { real, address, certificate, token, arrivals, stop } = socket::open()?;
        let kubeconfig = kubeconfig::write(address, &certificate, &token)?;
        Ok(Outside { real, arrivals: Arc::new(Mutex::new(arrivals)), kubeconfig, _stop: stop })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It is gone after a pause: its removal ends that.
        drop(std::fs::remove_file(&self.kubeconfig));
    }
}

impl Cluster {
    /// The path of a kubeconfig with which kubectl and other programs reach this cluster, as an
    /// administrator, over TLS on loopback. They are answered while the test waits in [`Cluster::outside`] or
    /// [`Cluster::pause`]; their requests are in the trace and meet faults.
    ///
    /// # Panics
    /// If no socket can be opened, or no file written.
    pub fn kubeconfig(&self) -> &Path {
        &self.open_outside().kubeconfig
    }

    /// Runs `work`, which may block, on another thread, and answers requests that come with the
    /// [`Cluster::kubeconfig`] until it ends. Time passes as on the wall meanwhile.
    ///
    /// ```no_run
    /// # use std::process::Command;
    /// testkit::run(|cluster| async move {
    ///     let mut kubectl = Command::new("kubectl");
    ///     kubectl.args(["create", "configmap", "web"]).env("KUBECONFIG", cluster.kubeconfig());
    ///     let status = cluster.outside(move || kubectl.status()).await;
    ///     assert!(status.unwrap().success());
    /// });
    /// ```
    pub async fn outside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let real = self.open_outside().real.clone();
        self.answer_until(real.blocking(work)).await
    }

    /// Stops here so that you can look into the cluster: prints the path of a kubeconfig, and answers until
    /// that file is removed. Time passes as on the wall meanwhile, so controllers go on working.
    ///
    /// With `SETPOINT_PAUSE=1`, a test that fails pauses by itself.
    pub async fn pause(&self) {
        let outside = self.open_outside();
        let (real, path) = (outside.real.clone(), outside.kubeconfig.clone());
        let shown = path.display();
        // Not with `eprintln`, which tests capture.
        let told = writeln!(
            io::stderr(),
            "The test is paused. Look into its cluster:\n  export KUBECONFIG={shown}\n  \
             kubectl get all --all-namespaces\nTo go on, remove that file:\n  rm {shown}"
        );
        drop(told);
        let waits = real.clone().spawn("pause", async move {
            while path.exists() {
                real.sleep(LOOK_FOR_FILE).await;
            }
        });
        let ended = self.answer_until(waits).await;
        ended.expect("the thread of the socket runs as long as the cluster");
    }

    fn open_outside(&self) -> &Outside {
        self.inner.outside.get_or_init(|| {
            Outside::open().unwrap_or_else(|error| panic!("no socket for programs outside: {error}"))
        })
    }

    /// Carries out requests from outside until `done`.
    async fn answer_until<T>(&self, done: impl Future<Output = T>) -> T {
        let (world, arrivals) = (self.world(), &self.open_outside().arrivals);
        let mut done = pin!(done);
        loop {
            if let Poll::Ready(output) = poll!(done.as_mut()) {
                return output;
            }
            let arrivals = Arc::clone(arrivals);
            // Blocks the simulation: every other task waits at this moment.
            let next = world
                .blocking(move || arrivals.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK));
            match next.await {
                Ok(arrived) => {
                    let answer = arrived.carry_out(Arc::clone(&self.inner.transport));
                    world.spawn("request from outside", answer).detach();
                    world.sleep(BETWEEN_REQUESTS).await;
                }
                Err(RecvTimeoutError::Timeout) => world.sleep(TICK).await,
                Err(RecvTimeoutError::Disconnected) => panic!("the thread of the socket has ended"),
            }
        }
    }
}
