//! Webhooks without sockets: functions that answer the requests of the server.

use bytes::Bytes;
use futures::future::BoxFuture;
use operator::webhook::{self, Webhooks};
use server::{Answer, Exchange, Outbound};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use world::World;

/// Returns a status code and a body.
type Handler = Arc<dyn Fn(Exchange) -> BoxFuture<'static, (u16, Bytes)> + Send + Sync>;

/// By server name.
type Handlers = Arc<Mutex<BTreeMap<String, Handler>>>;

/// The handlers of a cluster.
#[derive(Default)]
pub(crate) struct WebhookHandlers(Handlers);

impl WebhookHandlers {
    pub(crate) fn insert(&self, server_name: &str, handler: Handler) {
        let mut handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.insert(server_name.to_owned(), handler);
    }
}

impl webhook::Host for WebhookHandlers {
    fn host(&self, world: &World, server_names: Vec<String>, webhooks: Arc<Webhooks>) -> webhook::Hosted {
        let world = world.clone();
        let handler: Handler = Arc::new(move |exchange| {
            let (world, webhooks) = (world.clone(), Arc::clone(&webhooks));
            Box::pin(async move { answer(&world, &webhooks, &exchange).await })
        });
        for name in &server_names {
            self.insert(name, Arc::clone(&handler));
        }
        Box::new(Hosted { handlers: Arc::clone(&self.0), server_names, handler })
    }
}

async fn answer(world: &World, webhooks: &Webhooks, exchange: &Exchange) -> (u16, Bytes) {
    let Ok(url) = exchange.url.parse::<http::Uri>() else {
        return (400, Bytes::from_static(b"the URL of the webhook cannot be parsed"));
    };
    let reply = webhooks.answer(world, url.path(), url.query().unwrap_or_default(), &exchange.body).await;
    (reply.code.as_u16(), reply.body)
}

/// Webhooks of a running manager: unreachable once it is dropped.
struct Hosted {
    handlers: Handlers,
    server_names: Vec<String>,
    handler: Handler,
}

impl Drop for Hosted {
    fn drop(&mut self) {
        let mut handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        for name in &self.server_names {
            // Another process may serve them by now.
            if handlers.get(name).is_some_and(|handler| Arc::ptr_eq(handler, &self.handler)) {
                handlers.remove(name);
            }
        }
    }
}

impl Outbound for WebhookHandlers {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        let handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let handler = handlers.get(&exchange.server_name).cloned();
        Box::pin(async move {
            let name = exchange.server_name.clone();
            let handler = handler.ok_or_else(|| format!("dial tcp: lookup {name}: no such host"))?;
            let (status, body) = handler(exchange).await;
            let content_type = if status == 200 { "application/json" } else { "text/plain" };
            Ok(Answer { status, body, content_type: content_type.to_owned() })
        })
    }
}

impl fmt::Debug for WebhookHandlers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.debug_set().entries(handlers.keys()).finish()
    }
}
