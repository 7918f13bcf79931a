//! Exports the span of every reconcile to OpenTelemetry.
//!
//! ```
//! use operator::otel::Spans;
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! # #[derive(Debug)] struct Nowhere;
//! # impl opentelemetry_sdk::trace::SpanExporter for Nowhere {
//! #     async fn export(&self, _: Vec<opentelemetry_sdk::trace::SpanData>) -> opentelemetry_sdk::error::OTelSdkResult { Ok(()) }
//! # }
//! # let exporter = Nowhere;
//! // For example `opentelemetry_otlp::SpanExporter::builder().with_http().build()?`.
//! let spans = Spans::through(exporter, "shop-operator");
//! let subscriber = tracing_subscriber::registry().with(spans.layer());
//! tracing::subscriber::with_default(subscriber, || tracing::info_span!("reconcile"));
//! ```

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider, SpanExporter},
};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

/// The exporter of spans. Dropping it sends those that are left.
#[derive(Debug)]
pub struct Spans(SdkTracerProvider);

impl Spans {
    /// Sends spans in batches from a thread of its own, as spans of this service.
    pub fn through(exporter: impl SpanExporter + 'static, service: &str) -> Spans {
        let resource = Resource::builder().with_service_name(service.to_owned()).build();
        Spans(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
    }

    /// The layer to add to a subscriber.
    pub fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        OpenTelemetryLayer::new(self.0.tracer("operator"))
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_sdk::{error::OTelSdkResult, trace::SpanData};
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Debug, Default)]
    struct Kept(Arc<Mutex<Vec<SpanData>>>);

    impl SpanExporter for Kept {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().unwrap().extend(batch);
            Ok(())
        }
    }

    #[test]
    fn spans_are_exported_with_their_fields() {
        let kept = Arc::default();
        let spans = Spans::through(Kept(Arc::clone(&kept)), "shop");
        let subscriber = tracing_subscriber::registry().with(spans.layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!("reconcile", controller = "shop", object = "n/a").in_scope(|| {});
        });
        drop(spans);
        let kept = kept.lock().unwrap();
        let object = kept[0].attributes.iter().find(|field| field.key.as_str() == "object");
        assert_eq!(kept[0].name, "reconcile");
        assert_eq!(object.map(|field| field.value.as_str().into_owned()).as_deref(), Some("n/a"));
    }
}
