//! A process that was started for the user and ends with this one.

use crate::scaffold::toolchain::absent;
use anyhow::{Context, Result};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process; SIGKILL ends it if this is dropped.
#[derive(Debug)]
pub(super) struct ChildProcess(Child);

impl ChildProcess {
    pub(super) fn start(command: &mut Command) -> Result<ChildProcess> {
        let child = command.stdin(Stdio::null()).spawn().map_err(|error| absent(command, error))?;
        Ok(ChildProcess(child))
    }

    pub(super) fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.0.stdout.take()
    }

    /// How it has ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("cannot look after a process")
    }

    /// Sends SIGTERM, and waits for the end: an operator gives its lease back then.
    pub(super) fn stop(mut self) -> Result<()> {
        if self.ended()?.is_none() {
            #[expect(unsafe_code, reason = "the standard library sends no SIGTERM")]
            // SAFETY: the process is our child and has not been waited for.
            unsafe {
                libc::kill(self.0.id().cast_signed(), libc::SIGTERM);
            }
        }
        self.0.wait().map(drop).context("cannot wait for a process")
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // An error means that it has ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
