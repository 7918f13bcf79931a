//! The stages of a request, from authentication to its response.

use crate::{
    Inner, Server,
    answer::{self, Body},
    audit,
    audit_trail::Trail,
    authenticate::{self, Caller},
    authorize,
    call::Call,
    fair, follow, health, metrics,
    negotiate::Form,
    panics,
    refusal::Refusal,
    request::{self, Options, Place, Verb},
    route,
    shared_places::SharedPlace,
    trace, verbs,
};
use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response, request::Parts};
use std::sync::Arc;

/// A response, and the seat that is released once it is sent.
type Answered = (Response<Body>, Option<fair::Seat>);

/// A request and what was parsed of it. Boxed: it is large and moved between stages.
struct RequestContext {
    begun: world::Moment,
    deadline: fair::Deadline,
    head: Parts,
    place: Place,
    options: Options,
    /// The form of error responses.
    form: Form,
}

impl Server {
    /// The user of a request, by its certificate or token, for services in front of the server: the server takes it
    /// from the extensions then. A request with bad credentials stays as it is, so that the server refuses it.
    pub async fn identify(&self, head: &mut Parts) -> Option<Arc<Caller>> {
        let credentials = head.headers.clone();
        match self.0.authenticator.authenticate(&self.0, head).await {
            Ok(caller) => {
                head.extensions.insert(Arc::clone(&caller));
                Some(caller)
            }
            Err(_) => {
                head.headers = credentials;
                None
            }
        }
    }

    /// Authenticates and authorizes a request that another service answers. Without permission, returns the
    /// response to it.
    pub async fn permit(&self, head: &mut Parts) -> Result<Arc<Caller>, Box<Response<Body>>> {
        let form = Form::for_errors(&head.headers);
        let permitted = async {
            let caller = self.0.authenticator.authenticate(&self.0, head).await?;
            let Some(place) = request::parse(head.uri.path()) else { return Err(Refusal::not_served()) };
            let options = Options::parse(head.uri.query().unwrap_or_default());
            let caller = authorize::act_as(&self.0, caller, head, &place, &options).await?;
            match place {
                Place::Other(path) => authorize::path(&self.0, &caller, head, &path).await?,
                Place::Resource(target) => {
                    let verb = target.verb(&head.method, options.watch);
                    let trail = Trail::of(head);
                    authorize::resource(&self.0, Arc::clone(&caller), trail, verb, target, &options).await?;
                }
            }
            Ok(caller)
        };
        permitted.await.map_err(|refusal| Box::new(answer::refused(refusal, form)))
    }
}

impl Inner {
    /// Authenticates, audits and answers a request.
    pub(crate) async fn answer<B>(
        self: &Arc<Self>,
        request: Request<B>,
        place: Option<Place>,
        form: Form,
    ) -> Result<Answered, Refusal>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let begun = self.world.now();
        let (head, body) = request.into_parts();
        let Some(place) = place else { return Ok((health::unreadable(), None)) };
        let options = Options::parse(head.uri.query().unwrap_or_default());
        let deadline = fair::Deadline::new(&head.method, &place, &options)?;
        let mut context = Box::new(RequestContext { begun, deadline, head, place, options, form });
        let caller = match self.authenticator.authenticate(self, &mut context.head).await {
            Ok(caller) => caller,
            Err(refusal) => {
                Box::pin(audit::refused(self, &context.head, &context.place, &context.options)).await;
                return Err(refusal);
            }
        };
        let RequestContext { head, place, options, .. } = &mut *context;
        if let Some(connection) = head.extensions.remove::<Arc<SharedPlace>>() {
            connection.belongs_to(caller.sharer());
        }
        let record = audit::begin(self, &caller, head, place, options).await;
        let malformed = head.extensions.remove::<authenticate::MalformedBearer>();
        let line = (head.method.clone(), head.uri.clone());
        let trail = Trail::of(head).clone();
        let answered = match panics::catch(self.admit(context, caller, body)).await {
            Ok(answered) => answered,
            Err(panicked) => {
                panicked.log(&line);
                let audited = audit::panicked(record, panics::answer(), &panicked.message);
                return Ok((Box::pin(audited).await, None));
            }
        };
        let (response, seat) = answered.unwrap_or_else(|refusal| (answer::refusal(refusal, form), None));
        let response =
            answer::with_warnings(response, malformed.iter().map(authenticate::MalformedBearer::text));
        let response = panics::guard(response, line, trail);
        Ok((audit::end(record, response).await, seat))
    }

    /// Resolves impersonation, waits for a seat, and answers within the deadline.
    async fn admit<B>(
        self: &Arc<Self>,
        mut context: Box<RequestContext>,
        caller: Arc<Caller>,
        body: B,
    ) -> Result<Answered, Refusal>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let RequestContext { begun, deadline, head, place, options, form } = &mut *context;
        let (begun, deadline, form) = (*begun, *deadline, *form);
        let caller = match authorize::act_as(self, caller, head, place, options).await {
            Ok(caller) => caller,
            Err(refusal) => return Ok((answer::refused(refusal, form), None)),
        };
        let seat = match fair::seat(self, &caller, &head.method, place, options, deadline).await {
            Ok(seat) => seat,
            Err(refusal) => return Ok((refusal, None)),
        };
        // Boxed, so that requests that wait for a seat stay small.
        let work = self.dispatch(context, caller, body).boxed();
        let answered = deadline.keep(&self.world, begun, work).await;
        Ok((answered.unwrap_or_else(|refusal| answer::refusal(refusal, form)), Some(seat)))
    }

    /// Answers a request that has its seat.
    async fn dispatch<B>(
        self: &Arc<Self>,
        context: Box<RequestContext>,
        caller: Arc<Caller>,
        body: B,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let RequestContext { head, place, options, form, .. } = *context;
        let target = match place {
            Place::Other(path) => return self.dispatch_path(&head, &caller, &path, form).await,
            Place::Resource(target) => target,
        };
        let verb = target.verb(&head.method, options.watch);
        let trail = Trail::of(&head);
        let permit = match authorize::resource(self, caller, trail, verb, target, &options).await {
            Ok(permit) => permit,
            Err(refusal) => return Ok(answer::refused(refusal, form)),
        };
        let target = permit.target();
        let served =
            self.registry.served(&*self.store, &target.group, &target.version, &target.resource).await?;
        let served = match served {
            Some(served) if served.is_at(target, verb.unwrap_or(Verb::Get)) => served,
            // Kubernetes: an unknown resource of a built-in group gets a Status, others plain text.
            _ if self.registry.has_group(&target.group) => return Err(Refusal::not_served()),
            _ => return Ok(health::nothing_here()),
        };
        let permit = match route::is_proxy(&served, permit.target(), &head.method) {
            true => permit.passed_on(),
            false => permit,
        };
        let (verb, target) = (permit.verb(), permit.target());
        // Kubernetes: built-in resources do not support HEAD, except through a proxy.
        let is_answered = |_: &Verb| {
            head.method != Method::HEAD
                || served.custom().is_some()
                || route::is_proxy(&served, target, &head.method)
        };
        let Some(verb) = verb.filter(is_answered) else { return Err(route::no_verb(&served, target)) };
        let deprecation = served.deprecation().map(|text| text.into_owned());
        let mut call = match Call::new(self, permit, verb, served, head, options) {
            Ok(call) => call,
            Err(route::Unrouted::ByRouter(refusal)) => return Err(refusal),
            Err(route::Unrouted::ByHandler(refusal)) => {
                return Ok(answer::with_warnings(answer::refusal(refusal, form), deprecation.as_deref()));
            }
        };
        if verb.is_write() && follow::concerns(&call.served, &call.target) {
            call.note_commits();
        }
        let response = trace::run(&call, verb, form, self.perform(verb, &call, body)).await;
        let warnings = call.warnings();
        let warnings = deprecation.iter().chain(&warnings).map(String::as_str);
        Ok(answer::with_warnings(response, warnings))
    }

    /// Answers a request for a path that is not a resource.
    async fn dispatch_path(
        self: &Arc<Self>,
        head: &Parts,
        caller: &Caller,
        path: &str,
        form: Form,
    ) -> Result<Response<Body>, Refusal> {
        if let Err(refusal) = authorize::path(self, caller, head, path).await {
            return Ok(answer::refused(refusal, form));
        }
        match path {
            "/metrics" => Ok(Box::pin(metrics::answer(self, &head.method)).await),
            fair::DUMP => Ok(fair::dump(self)),
            path => Box::pin(health::answer(self, path, head)).await,
        }
    }

    /// Runs the verb of a call, and the hooks after it.
    async fn perform<B>(&self, verb: Verb, call: &Call, body: B) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let response = self.run_verb(verb, call, body).await?;
        follow::after(call).await;
        Ok(response)
    }

    async fn run_verb<B>(&self, verb: Verb, call: &Call, body: B) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        // Each boxed, so that the most frequent verbs do not need the space of the largest.
        if route::is_connect(&call.served, &call.target) {
            let is_proxy = call.target.subresource == "proxy";
            if is_proxy && &*call.served.resource.name != "nodes" {
                return verbs::connect::proxy::proxy(call, verbs::connect::proxy::passed(body)).boxed().await;
            }
            // Clients that switch protocols send a body after that.
            let body = if verb.is_write() && is_proxy { call.take(body).await? } else { Bytes::new() };
            return verbs::connect::connect(call, body).boxed().await;
        }
        let body = if verb.is_write() { call.take(body).await? } else { Bytes::new() };
        let (world, size) = (&self.world, body.len());
        match verb {
            Verb::Get => verbs::read::get(call).await,
            Verb::List => verbs::read::list(call).boxed().await,
            Verb::Watch => verbs::watch::watch(call).boxed().await,
            Verb::Create => self.workplaces.run(world, size, verbs::create::create(call, body).boxed()).await,
            Verb::Update => self.workplaces.run(world, size, verbs::update::update(call, body).boxed()).await,
            Verb::Patch => self.workplaces.run(world, size, verbs::update::patch(call, body).boxed()).await,
            Verb::Delete => verbs::delete::delete(call, body).boxed().await,
            Verb::DeleteCollection => verbs::delete::delete_collection(call, body).boxed().await,
        }
    }
}
