//! `setpoint run`: the operator is built and started again when a file changes, and Ctrl-C ends all of it.

use crate::project::Project;
use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Stdio},
};

/// A running `setpoint run`.
struct Run {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Run {
    fn start(project: &Project) -> Run {
        // A process group of its own, as a shell gives it: Ctrl-C reaches all of its processes.
        let mut command = project.command("run");
        let mut process = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Run { process, output }
    }

    /// Reads on to a line that begins so; returns the rest of it.
    fn wait_for(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended before it printed {start:?}");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
        }
    }

    /// As Ctrl-C does.
    fn interrupt(&mut self) -> Option<i32> {
        #[expect(unsafe_code, reason = "the standard library sends no SIGINT")]
        // SAFETY: the process leads a group and has not been waited for.
        unsafe {
            libc::kill(-self.process.id().cast_signed(), libc::SIGINT);
        }
        self.process.wait().unwrap().code()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // If the test has failed: the control plane ends with it.
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.interrupt();
        }
    }
}

#[test]
fn a_change_builds_and_starts_the_operator_again_and_ctrl_c_ends_everything() {
    let project = Project::with_prepared_manifests();
    let mut run = Run::start(&project);
    let url = run.wait_for("a fresh control plane is up at https://");
    run.wait_for("installed redis.cache.acme.io");
    run.wait_for("the operator runs; it is built and started again when a file changes");
    run.wait_for("the operator has started");

    fs::write(project.root.join("broken"), "").unwrap();
    fs::write(project.root.join("src/broken.rs"), "// does not build\n").unwrap();
    run.wait_for("it does not build; the operator of before goes on");
    fs::remove_file(project.root.join("broken")).unwrap();
    fs::remove_file(project.root.join("src/broken.rs")).unwrap();
    run.wait_for("the operator has started");
    assert!(TcpStream::connect(&url).is_ok());

    assert_eq!(run.interrupt(), Some(0));
    assert!(TcpStream::connect(&url).is_err(), "the control plane has ended");
    let calls = project.read("calls");
    let calls: Vec<_> = calls.lines().filter(|line| ["build", "started", "stopped"].contains(line)).collect();
    assert_eq!(calls, ["build", "started", "build", "build", "stopped", "started", "stopped"]);
}
