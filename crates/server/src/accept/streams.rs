//! HTTP/2 streams: a stream whose response is not read in time is reset.
//!
//! A client can close the window of a stream and keep its connection busy. The waiting bytes are held by
//! the HTTP library, which frees them only when the stream's task ends; so this executor limits the tasks.

use futures::future::BoxFuture;
use hyper::rt::Executor;
use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
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
    /// How long the body of a response may take.
    limit: Duration,
}

impl StreamTasks {
    pub(super) fn new(world: &World, limit: Duration) -> StreamTasks {
        StreamTasks { world: world.clone(), limit }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamTasks {
    fn execute(&self, task: F) {
        let stream = StreamTask {
            task: Box::pin(task),
            stream: ThisStream(Arc::default()),
            world: self.world.clone(),
            limit: self.limit,
            overdue: None,
        };
        self.world.spawn("stream", stream).detach();
    }
}

/// The stream of a request.
#[derive(Clone, Debug)]
pub(super) struct ThisStream(Arc<AtomicBool>);

impl ThisStream {
    /// The stream whose task calls this; `None` with HTTP/1.
    pub(super) fn current() -> Option<ThisStream> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Starts the time limit: the response has begun.
    pub(super) fn is_answered(&self) {
        self.0.store(true, Relaxed);
    }
}

struct StreamTask<F> {
    task: Pin<Box<F>>,
    stream: ThisStream,
    world: World,
    limit: Duration,
    /// Resolves when the response is overdue.
    overdue: Option<BoxFuture<'static, ()>>,
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let before = CURRENT.replace(Some(self.stream.clone()));
        let done = self.task.as_mut().poll(context);
        CURRENT.set(before);
        if done.is_ready() || !self.stream.0.load(Relaxed) {
            return done;
        }
        let StreamTask { world, limit, overdue, .. } = &mut *self;
        let overdue = overdue.get_or_insert_with(|| {
            let (world, limit) = (world.clone(), *limit);
            Box::pin(async move { world.sleep(limit).await })
        });
        // The library resets the stream when its task is dropped.
        overdue.as_mut().poll(context)
    }
}
