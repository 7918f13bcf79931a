//! HTTP/2 streams: a stream whose response is not read in time is reset. A response that lasts as long as its client wants,
//! such as a watch, is so when a piece of it is not.
//!
//! A client can close the window of a stream and keep its connection busy. The waiting bytes are held by
//! the HTTP library, which frees them only when the stream's task ends; so this executor limits the tasks.

use super::Limits;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use world::World;

thread_local! {
    /// The stream whose task runs on this thread.
    static CURRENT: RefCell<Option<ThisStream>> = const { RefCell::new(None) };
}

/// The executor of stream tasks.
#[derive(Clone, Debug)]
pub(super) struct StreamTasks {
    world: World,
    times: StreamTimes,
}

#[derive(Clone, Copy, Debug)]
struct StreamTimes {
    /// How long the body of a response may take.
    whole: Duration,
    /// How long a piece of one without an end may wait for its client.
    piece: Duration,
}

impl StreamTasks {
    pub(super) fn new(world: &World, limits: &Limits) -> StreamTasks {
        let times = StreamTimes { whole: limits.request, piece: limits.stall };
        StreamTasks { world: world.clone(), times }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamTasks {
    fn execute(&self, task: F) {
        let stream = StreamTask {
            task: Box::pin(task),
            stream: ThisStream::default(),
            world: self.world.clone(),
            times: self.times,
            overdue: None,
        };
        self.world.spawn("stream", stream).detach();
    }
}

/// The stream of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct ThisStream(Arc<StreamState>);

/// What the body of a response tells the task of its stream.
#[derive(Debug, Default)]
struct StreamState {
    /// The response has begun, and has an end.
    is_answered: AtomicBool,
    /// A piece of a response without an end waits for the client.
    is_unread: AtomicBool,
    /// How many of its pieces have been taken.
    pieces: AtomicU64,
}

impl ThisStream {
    /// The stream whose task calls this; `None` with HTTP/1.
    pub(super) fn current() -> Option<ThisStream> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Starts the time limit: the response has begun.
    pub(super) fn is_answered(&self) {
        self.0.is_answered.store(true, Relaxed);
    }

    /// Which time limit runs: that of the whole response, or of one of its pieces.
    fn running(&self) -> Option<TimeLimit> {
        if self.0.is_answered.load(Relaxed) {
            return Some(TimeLimit::Whole);
        }
        let pieces = self.0.pieces.load(Relaxed);
        self.0.is_unread.load(Relaxed).then_some(TimeLimit::Piece(pieces))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeLimit {
    Whole,
    /// With its number.
    Piece(u64),
}

/// A body that tells its stream when pieces are taken, if it must.
pub(super) struct PiecewiseBody<B> {
    body: B,
    stream: Option<ThisStream>,
}

impl<B> PiecewiseBody<B> {
    pub(super) fn new(body: B, stream: Option<ThisStream>) -> PiecewiseBody<B> {
        if let Some(stream) = &stream {
            // Whether there is a piece is known when the client has room for one.
            stream.0.is_unread.store(true, Relaxed);
        }
        PiecewiseBody { body, stream }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for PiecewiseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Some(ThisStream(state)) = &self.stream {
            // The library asks for the next piece once the client has room for it.
            state.is_unread.store(frame.is_ready(), Relaxed);
            state.pieces.fetch_add(u64::from(frame.is_ready()), Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct StreamTask<F> {
    task: Pin<Box<F>>,
    stream: ThisStream,
    world: World,
    times: StreamTimes,
    /// Resolves when the response is overdue.
    overdue: Option<(TimeLimit, BoxFuture<'static, ()>)>,
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let before = CURRENT.replace(Some(self.stream.clone()));
        let done = self.task.as_mut().poll(context);
        CURRENT.set(before);
        if done.is_ready() {
            return done;
        }
        let StreamTask { stream, world, times, overdue, .. } = &mut *self;
        let Some(limit) = stream.running() else {
            *overdue = None;
            return Poll::Pending;
        };
        overdue.take_if(|(of, _)| *of != limit);
        let (_, overdue) = overdue.get_or_insert_with(|| {
            let time = if limit == TimeLimit::Whole { times.whole } else { times.piece };
            let world = world.clone();
            (limit, Box::pin(async move { world.sleep(time).await }))
        });
        // The library resets the stream when its task is dropped.
        overdue.as_mut().poll(context)
    }
}
