//! The audit log: the last stage of a request, if it is enabled.
//!
//! | file | content |
//! |---|---|
//! | `policy` | which requests are recorded, at which level |
//! | `record` | the request itself, and an event at each of its stages |
//! | `event` | an event, as it is written |
//! | `content` | request and response objects as JSON |
//! | `log` | a queue of lines, and the task that writes them |

mod content;
mod event;
mod log;
mod policy;
mod record;

pub use policy::{AuditPolicy, BadAuditPolicy};
pub(crate) use record::{begin, end, panicked, refused};

use crate::audit_trail::AuditLevel;
use api::prometheus::Page;
use log::Log;
use std::{
    io::Write,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use world::World;

/// The configuration of an audit log.
pub struct Audit {
    pub policy: AuditPolicy,
    /// Gets one line of JSON per event.
    pub out: Box<dyn Write + Send>,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Audit").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Writes the audit log.
#[derive(Debug)]
pub(crate) struct Auditor {
    policy: AuditPolicy,
    log: Log,
    /// Request counts by level.
    levels: [AtomicU64; 4],
    events: AtomicU64,
}

impl Auditor {
    pub(crate) fn new(world: &World, audit: Audit) -> Auditor {
        let Audit { policy, out } = audit;
        Auditor { policy, log: Log::new(world, out), levels: Default::default(), events: AtomicU64::new(0) }
    }

    /// Returns when all earlier events are written.
    pub(crate) async fn flush(&self) {
        self.log.flush().await;
    }

    fn count(&self, level: AuditLevel) {
        self.levels[level as usize].fetch_add(1, Relaxed);
    }
}

/// Truncates a text to that many bytes, or a few less at a character boundary.
pub(crate) fn cut(text: &mut String, limit: usize) {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
}

/// Writes the metrics.
pub(crate) fn measure(auditor: Option<&Auditor>, page: &mut Page) {
    let Some(auditor) = auditor else { return };
    let help = "[ALPHA] Counter of audit events generated and sent to the audit backend.";
    let events = auditor.events.load(Relaxed) as f64;
    page.single("apiserver_audit_event_total", "counter", help, events);
    let name = "apiserver_audit_error_total";
    page.family(name, "counter", "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.");
    page.sample(name, &[("plugin", "log")], auditor.log.dropped() as f64);
    let name = "apiserver_audit_level_total";
    page.family(name, "counter", "[ALPHA] Counter of policy levels for audit events (1 per request).");
    for (level, count) in AuditLevel::ALL.iter().zip(&auditor.levels) {
        page.sample(name, &[("level", level.text())], count.load(Relaxed) as f64);
    }
}
