//! A log that is not sent at once: piece by piece, as the client reads it or as it grows.
//!
//! A piece is computed when the one before has been taken, so that a client that does not read holds one piece.

use super::{Body, Changes, IDLE, Kubelet};
use crate::logs::{self, Log, LogOptions, Rest};
use bytes::Bytes;
use futures::{future::select, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use operator::Key;
use std::{convert::Infallible, pin::pin, time::Duration};
use world::World;

pub(super) struct FollowedLog {
    kubelet: Kubelet,
    world: World,
    key: Key,
    uid: Option<String>,
    container: String,
    options: LogOptions,
    /// The last piece; its text is empty once it was taken.
    log: Log,
    /// Whether there may be more than `log`.
    must_look: bool,
    changes: Changes,
}

/// The body of a response with the log.
pub(super) fn body(followed: FollowedLog) -> Body {
    let pieces = stream::unfold(followed, |mut followed| async move {
        let piece = followed.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(piece)), followed))
    });
    StreamBody::new(pieces).boxed_unsync()
}

impl FollowedLog {
    /// Follows from `log` on, which was read at this moment.
    pub(super) fn new(
        kubelet: &Kubelet,
        world: &World,
        pod: &Pod,
        container: &str,
        options: LogOptions,
        log: Log,
    ) -> FollowedLog {
        let key = Key::of(pod);
        FollowedLog {
            kubelet: kubelet.clone(),
            world: world.clone(),
            changes: kubelet.changes(&key),
            key,
            uid: pod.metadata.uid.clone(),
            container: container.to_owned(),
            options,
            log,
            must_look: false,
        }
    }

    /// The next piece, once there is one; `None` at the end. To drop this future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let idle_at = self.world.now() + IDLE;
        loop {
            if self.must_look {
                self.look().await;
            }
            if let Some(piece) = self.take_piece() {
                return Some(piece);
            }
            match self.log.rest {
                Rest::Nothing => return None,
                Rest::Ready => {}
                Rest::Later(_) if self.world.now() >= idle_at => return None,
                Rest::Later(at) => {
                    let wake = at.and_then(|at| self.until(at));
                    let wake = wake.map_or(idle_at, |wait| idle_at.min(self.world.now() + wait));
                    let (changed, time) = (pin!(self.changes.next()), pin!(self.world.sleep_until(wake)));
                    select(changed, time).await;
                }
            }
            self.must_look = true;
        }
    }

    /// How long it is until then. What is due already waits for a change of the pod's status.
    fn until(&self, at: Timestamp) -> Option<Duration> {
        let wait = Duration::try_from(at.duration_since(self.world.wall())).ok()?;
        Some(wait).filter(|wait| !wait.is_zero())
    }

    /// Looks for what comes after the last piece.
    async fn look(&mut self) {
        match self.kubelet.pod(&self.key).filter(|pod| pod.metadata.uid == self.uid) {
            Some(pod) => {
                let (container, options, last) = (&self.container, &self.options, &self.log);
                let now = self.world.wall();
                let look = self.kubelet.workshop().simulate(&self.world, &pod, |simulation| {
                    logs::more(simulation, container, options, last, now)
                });
                self.log = look.await;
            }
            None => self.log.rest = Rest::Nothing,
        }
        self.must_look = false;
    }

    fn take_piece(&mut self) -> Option<Bytes> {
        let text = std::mem::take(&mut self.log.text);
        if let Some(left) = &mut self.options.limit_bytes {
            *left = left.saturating_sub(text.len());
        }
        (!text.is_empty()).then(|| text.into())
    }
}
