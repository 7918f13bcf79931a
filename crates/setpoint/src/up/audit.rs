//! The audit log: reads its policy from one file, writes its events to another.

use anyhow::{Context, Result};
use server::{Audit, AuditPolicy};
use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Means standard output.
// Kubernetes: as its own flag has it.
const STANDARD_OUTPUT: &str = "-";

/// The log with this policy in this file; none without both.
pub(crate) fn open<P: AsRef<Path> + ?Sized>(policy: Option<&P>, log: Option<&P>) -> Result<Option<Audit>> {
    let (Some(policy), Some(log)) = (policy.map(AsRef::as_ref), log.map(AsRef::as_ref)) else {
        return Ok(None);
    };
    let policy = AuditPolicy::read(policy).with_context(|| {
        format!("--audit-policy-file {}: use an audit.k8s.io/v1 Policy", policy.display())
    })?;
    let out: Box<dyn Write + Send> = match log {
        log if log.as_os_str() == STANDARD_OUTPUT => Box::new(io::stdout()),
        log => Box::new(append(log).with_context(|| {
            format!("--audit-log-path {}: use a file that you may write to, or -", log.display())
        })?),
    };
    Ok(Some(Audit { policy, out }))
}

/// Only the owner may read it: it tells what each user does.
fn append(path: &Path) -> io::Result<std::fs::File> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
