//! A log that is followed: its text piece by piece, until the container ends.

use super::{Body, Changes, IDLE, Kubelet};
use crate::logs::{self, Log, LogOptions};
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
    log: Log,
    /// Whether the text of `log` was sent.
    is_sent: bool,
    /// How many more bytes may be sent.
    left: usize,
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
            left: options.limit_bytes.unwrap_or(usize::MAX),
            options,
            log,
            is_sent: false,
        }
    }

    /// The next piece, once there is one; `None` at the end. To drop this future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let idle_at = self.world.now() + IDLE;
        loop {
            if !self.is_sent {
                self.is_sent = true;
                if let Some(piece) = self.piece() {
                    return Some(piece);
                }
            }
            if self.log.is_over || self.left == 0 || self.world.now() >= idle_at {
                return None;
            }
            let wake = self.wait_for().map_or(idle_at, |wait| idle_at.min(self.world.now() + wait));
            {
                let (changed, time) = (pin!(self.changes.next()), pin!(self.world.sleep_until(wake)));
                select(changed, time).await;
            }
            self.look();
        }
    }

    /// Until the next line is written. What is due already waits for a change of the pod's status.
    fn wait_for(&self) -> Option<Duration> {
        let now: Timestamp = self.world.wall();
        let wait = Duration::try_from(self.log.next?.duration_since(now)).ok()?;
        Some(wait).filter(|wait| !wait.is_zero())
    }

    /// Looks for what was written since the last time.
    fn look(&mut self) {
        let pod = self.kubelet.pod(&self.key).filter(|pod| pod.metadata.uid == self.uid);
        let now = self.world.wall();
        match pod {
            Some(pod) => self.log = logs::more(&pod, &self.container, &self.options, &self.log, now),
            None => (self.log.text, self.log.is_over) = (String::new(), true),
        }
        self.is_sent = false;
    }

    fn piece(&mut self) -> Option<Bytes> {
        let mut text = std::mem::take(&mut self.log.text).into_bytes();
        text.truncate(self.left);
        self.left -= text.len();
        (!text.is_empty()).then(|| text.into())
    }
}
