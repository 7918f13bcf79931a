//! `setpoint up` as a person meets it: the real binary, real signals.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

struct Up {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Up {
    fn start(arguments: &[&str], directory: &Path) -> Up {
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        command.arg("up").args(arguments).current_dir(directory).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Up { process, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Asks it to stop, and waits until it has.
    fn stop(mut self) -> Option<i32> {
        #[expect(unsafe_code, reason = "the standard library sends no SIGTERM")]
        // SAFETY: the process is our child and has not been waited for.
        unsafe {
            libc::kill(self.process.id().cast_signed(), libc::SIGTERM);
        }
        self.process.wait().unwrap().code()
    }
}

#[test]
fn up_says_where_its_data_is_and_stops_cleanly_when_asked() {
    let scratch = tempfile::tempdir().unwrap();
    for arguments in [&["--ephemeral"][..], &["--data-dir", "here"]] {
        let mut up = Up::start(arguments, scratch.path());
        let line = up.line();
        assert!(line.contains("keeps its data in"), "{line}");
        assert_eq!(up.stop(), Some(0));
    }
    assert!(scratch.path().join("here/store").is_dir());
}

#[test]
fn a_second_one_on_the_same_data_is_told_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let mut first = Up::start(&[], scratch.path());
    first.line();
    let second = Command::new(env!("CARGO_BIN_EXE_setpoint")).arg("up").current_dir(scratch.path()).output();
    let second = second.unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    let expected = format!(
        "is in use by process {}: stop that process, or choose another --data-dir",
        first.process.id()
    );
    assert!(said.contains(&expected), "{said}");
    assert_eq!((second.status.code(), said.lines().count()), (Some(1), 1));
    assert_eq!(first.stop(), Some(0));
}
