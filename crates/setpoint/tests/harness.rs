//! A running `setpoint up`, stopped when its handle is dropped.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

pub(crate) const SETPOINT: &str = env!("CARGO_BIN_EXE_setpoint");

pub(crate) struct Up {
    pub(crate) process: Child,
    output: BufReader<ChildStdout>,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) url: String,
}

impl Up {
    /// Starts it on a free port, and waits until it prints that it is ready.
    pub(crate) fn start(arguments: &[&str], directory: &Path) -> Up {
        Up::start_logging(arguments, directory, Stdio::inherit())
    }

    /// As `start`, with a place for its log.
    pub(crate) fn start_logging(arguments: &[&str], directory: &Path, log: Stdio) -> Up {
        let mut command = Command::new(SETPOINT);
        command.stderr(log);
        command.args(["up", "--listen", "127.0.0.1:0"]).args(arguments).current_dir(directory);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut up = Up { process, output, kubeconfig: PathBuf::new(), url: String::new() };
        loop {
            let mut line = String::new();
            assert_ne!(up.output.read_line(&mut line).unwrap(), 0, "it ended before it was ready");
            if let Some(ready) = line.trim().strip_prefix("ready ") {
                let (url, kubeconfig) = ready.split_once(" kubeconfig=").unwrap();
                (up.url, up.kubeconfig) = (url.to_owned(), PathBuf::from(kubeconfig));
                return up;
            }
        }
    }

    /// Sends SIGTERM, and waits for the exit.
    pub(crate) fn stop(mut self) -> Option<i32> {
        #[expect(unsafe_code, reason = "the standard library sends no SIGTERM")]
        // SAFETY: the process is our child and has not been waited for.
        unsafe {
            libc::kill(self.process.id().cast_signed(), libc::SIGTERM);
        }
        self.process.wait().unwrap().code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.process.kill());
    }
}
