//! The events of a watch on their way to the client: late, held back, or cut off.

use super::{
    Body, Wire,
    pending::{Place, UnderWay},
};
use crate::{
    asked::Asked,
    fault::{Effect, End, Lost},
};
use bytes::Bytes;
use futures::{
    future::{Either, select},
    stream,
};
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

struct Told {
    wire: Arc<Wire>,
    resource: String,
    place: Place,
    body: server::Body,
    lag: Duration,
    /// How many more events there are before the end, and which end.
    ends: Option<(usize, End)>,
    cut: oneshot::Receiver<()>,
    _under_way: UnderWay,
    over: bool,
}

/// The same answer, with what the effects do to its events.
pub(super) fn follow(
    wire: &Arc<Wire>,
    asked: &Asked,
    place: Place,
    effects: &[Effect],
    response: Response<server::Body>,
) -> Response<Body> {
    let (mut lag, mut ends) = (Duration::ZERO, None);
    for effect in effects {
        match effect {
            Effect::Lag(duration) => lag += *duration,
            Effect::Watch { after, end } => ends = Some((*after, *end)),
            _ => {}
        }
    }
    let (under_way, cut) = wire.pending.watching(&asked.resource);
    let (wire, resource) = (Arc::clone(wire), asked.resource.clone());
    let (head, body) = response.into_parts();
    let told = Told { wire, resource, place, body, lag, ends, cut, _under_way: under_way, over: false };
    let frames = stream::unfold(told, |mut told| async move {
        let frame = told.next().await?;
        Some((frame.map(Frame::data), told))
    });
    Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
}

impl Told {
    async fn next(&mut self) -> Option<Result<Bytes, Lost>> {
        if self.over {
            return None;
        }
        match self.ends {
            Some((0, end)) => return self.end(end),
            Some((left, _)) => self.ends = self.ends.map(|(_, end)| (left - 1, end)),
            None => {}
        }
        let told = {
            let event = std::pin::pin!(async {
                let frame = self.body.frame().await?;
                if !self.lag.is_zero() {
                    let late = format!("an event of {} that comes late", self.resource);
                    let _under_way = self.wire.pending.note(late);
                    self.wire.world.sleep(self.lag).await;
                }
                self.wire.pending.released(&self.resource).await;
                Some(frame)
            });
            match select(event, &mut self.cut).await {
                Either::Left((frame, _)) => Some(frame?),
                Either::Right(_) => None,
            }
        };
        match told {
            Some(Ok(frame)) => Some(Ok(frame.into_data().unwrap_or_default())),
            Some(Err(never)) => match never {},
            None => self.end(End::Broken),
        }
    }

    fn end(&mut self, end: End) -> Option<Result<Bytes, Lost>> {
        self.over = true;
        self.wire.pending.owe(&self.wire.world, &self.place);
        end.last_words()
    }
}
