//! Webhooks without sockets: functions that answer the requests of the server.

use bytes::Bytes;
use futures::future::BoxFuture;
use server::{Answer, Exchange, Outbound};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Returns a status code and a body.
type Handler = Arc<dyn Fn(Exchange) -> BoxFuture<'static, (u16, Bytes)> + Send + Sync>;

/// Handlers by server name.
#[derive(Default)]
pub(crate) struct WebhookHandlers(Mutex<BTreeMap<String, Handler>>);

impl WebhookHandlers {
    pub(crate) fn insert(&self, server_name: &str, handler: Handler) {
        let mut handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.insert(server_name.to_owned(), handler);
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
