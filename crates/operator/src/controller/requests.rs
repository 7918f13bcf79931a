//! Controllers whose requests are a type of their own, instead of the key of an object.

use super::{Builder, Controller};
use crate::{
    Context, Failure, Key, Next,
    rules::Use,
    source::{Cacheable, Source},
    trigger,
};
use futures::{FutureExt, Stream, StreamExt};
use std::{
    fmt::{self, Display},
    future::ready,
    marker::PhantomData,
    str::FromStr,
    sync::Arc,
};

/// In the place of the primary kind of a [`Builder`]: its requests are of type `R`.
pub struct Requests<R>(PhantomData<fn() -> R>);

impl Controller {
    /// Starts a controller that reconciles requests of your own type, which come from [watched](Builder::watches)
    /// objects and from streams. The queue holds their texts: `R` must be the same after `to_string` and `parse`.
    ///
    /// It has no primary object: terminal failures are logged, and recorded on no object.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use operator::{Context, Controller, Failure, Next, all};
    /// use std::{convert::Infallible, fmt, str::FromStr};
    ///
    /// /// All pods of a node are handled together.
    /// struct OnNode(String);
    ///
    /// impl fmt::Display for OnNode {
    ///     fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    ///         out.write_str(&self.0)
    ///     }
    /// }
    /// impl FromStr for OnNode {
    ///     type Err = Infallible;
    ///     fn from_str(text: &str) -> Result<OnNode, Infallible> {
    ///         Ok(OnNode(text.to_owned()))
    ///     }
    /// }
    ///
    /// async fn reconcile(context: Context<()>, OnNode(node): OnNode) -> Result<Next, Failure> {
    ///     println!("{} pods on {node}", context.view::<Pod>()?.indexed("node", &node)?.len());
    ///     Ok(Next::Settled)
    /// }
    /// let node_of = |pod: &Pod| -> Vec<String> { pod.spec.iter().filter_map(|it| it.node_name.clone()).collect() };
    /// let controller = Controller::of_requests::<OnNode>("nodes")
    ///     .watches(all::<Pod>().index("node", node_of), move |pod| node_of(pod).into_iter().map(OnNode).collect())
    ///     .reconcile((), reconcile);
    /// ```
    pub fn of_requests<R>(name: &str) -> Builder<Requests<R>>
    where
        R: Display + FromStr + Send + 'static,
    {
        Builder::named(name)
    }
}

impl<R: Display + FromStr + Send + 'static> Builder<Requests<R>> {
    /// Reconciles the requests that `requests` returns when an object changes, for the object before and after it.
    pub fn watches<K: Cacheable>(
        self,
        source: Source<K>,
        requests: impl Fn(&K) -> Vec<R> + Send + Sync + 'static,
    ) -> Builder<Requests<R>> {
        let keys = Arc::new(move |object: &K| requests(object).iter().map(key).collect::<Vec<Key>>());
        self.declare(source.declared(Use::Watches)).connect(move |sources| {
            let view = sources.open(&source);
            let mapped = Arc::clone(&keys);
            let mapping = trigger::mapped(view.memo(), move |object: &K| mapped(object));
            trigger::connect(&view, source.predicate(), mapping, &sources.queue);
            // Objects that cannot be decoded have no requests.
            let known =
                move || view.list().unwrap_or_default().iter().flat_map(|object| keys(object)).collect();
            sources.known.push(Box::new(known));
        })
    }

    /// Reconciles the requests of a stream: for changes outside of the cluster.
    pub fn stream(self, requests: impl Stream<Item = R> + Send + 'static) -> Builder<Requests<R>> {
        self.add_stream(requests.map(|request| key(&request)))
    }

    /// Sets the reconcile function. It gets nothing but the request, and reads the state itself each time.
    pub fn reconcile<S, F, O>(self, state: S, reconcile: F) -> Controller
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, R) -> O + Send + Sync + 'static,
        O: Future<Output = Result<Next, Failure>> + Send + 'static,
    {
        self.build(state, move |context, key: Key| match key.as_str().parse::<R>() {
            Ok(request) => reconcile(context, request).left_future(),
            Err(_) => ready(Err(unreadable(&key))).right_future(),
        })
    }
}

fn key<R: Display>(request: &R) -> Key {
    Key::parse(&request.to_string())
}

fn unreadable(key: &Key) -> Failure {
    Failure::terminal("UnreadableRequest", format!("the request {key} cannot be read from its own text"))
}

impl<R> fmt::Debug for Requests<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Requests")
    }
}
