//! A shell in a folder of its own that types the commands of a page, and compares what they print with the page.

use super::text::{
    level::{fits, level},
    page::{self, Step},
};
use crate::harness::SETPOINT;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Printed after each command, with its exit code.
const MARK: &str = "--- the command above ended with";
/// Where `setpoint up` listens without a flag.
const ADDRESS: &str = "127.0.0.1:6443";
/// The home directory that pages show.
const HOME: &str = "/home/you";
/// Commands that only look are repeated until they show what the page shows: so often, with this pause in seconds.
const ATTEMPTS: usize = 100;
const PAUSE: &str = "sleep 0.2";
const LOOKS: [&str; 11] = [
    "kubectl get",
    "kubectl describe",
    "kubectl logs",
    "kubectl events",
    "setpoint get",
    "setpoint why",
    "setpoint tree",
    "setpoint events",
    "setpoint logs",
    "curl",
    "cat",
];

pub(crate) struct Terminal {
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    servers: Vec<Server>,
    scratch: tempfile::TempDir,
}

/// A running `setpoint up`.
struct Server {
    process: Child,
    /// As the page says, and as it is.
    addresses: [String; 2],
    output: BufReader<ChildStdout>,
}

impl Terminal {
    /// With these programs besides `setpoint`, each by name and path.
    pub(crate) fn new(programs: &[(&str, &Path)]) -> Terminal {
        let scratch = tempfile::tempdir().unwrap();
        let tools = scratch.path().join("bin");
        fs::create_dir(&tools).unwrap();
        symlink(SETPOINT, tools.join("setpoint")).unwrap();
        for (name, path) in programs {
            symlink(fs::canonicalize(path).unwrap(), tools.join(name)).unwrap();
        }
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).current_dir(scratch.path());
        command.env("PATH", path).env("HOME", scratch.path()).env_remove("KUBECONFIG");
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = shell.stdin.take().unwrap();
        writeln!(input, "exec 2>&1").unwrap();
        let output = BufReader::new(shell.stdout.take().unwrap());
        Terminal { shell, input, output, servers: Vec::new(), scratch }
    }

    /// Types all commands of a page that have no excuse.
    pub(crate) fn run(&mut self, page: &str) {
        for step in page::steps(&page::read(page)) {
            match step {
                Step::File { name, text } => {
                    fs::write(self.scratch.path().join(name), text).unwrap();
                }
                Step::Interrupt => self.servers.pop().expect("a `setpoint up` before ^C").stop(),
                Step::Command { line, .. } if page::excuse(page, &line).is_some() => {}
                Step::Command { line, shown } => self.step(page, &line, &shown),
            }
        }
    }

    /// Replaces an address of the page by the one of the test.
    pub(crate) fn serve_at(
        &mut self,
        of_page: &str,
        process: Child,
        address: &str,
        output: BufReader<ChildStdout>,
    ) {
        let addresses = [of_page.to_owned(), address.to_owned()];
        self.servers.push(Server { process, addresses, output });
    }

    fn step(&mut self, page: &str, line: &str, shown: &[String]) {
        let up = line.strip_prefix("cargo run --release -- up").or_else(|| line.strip_prefix("setpoint up"));
        if let Some(arguments) = up {
            let mut said = self.up(arguments.trim_end_matches('&').trim());
            // The page shows the first lines.
            said.truncate(shown.len());
            return self.compare(page, line, shown, &said);
        }
        let attempts = if LOOKS.iter().any(|look| line.starts_with(look)) { ATTEMPTS } else { 1 };
        for attempt in 1..=attempts {
            let (said, code) = self.type_line(line);
            let should_fail = shown.iter().any(|line| is_error(line));
            let is_well = (code != 0) == should_fail && (shown.is_empty() || self.is_as_shown(shown, &said));
            if is_well {
                return;
            }
            if attempt == attempts {
                assert_eq!(code != 0, should_fail, "{page}: `{line}` ended with {code}: {}", said.join("\n"));
                self.compare(page, line, shown, &said);
            }
            self.type_line(PAUSE);
        }
    }

    fn is_as_shown(&self, shown: &[String], said: &[String]) -> bool {
        let levelled = |lines: &[String]| lines.iter().map(|line| level(line)).collect::<Vec<_>>();
        fits(&levelled(shown), &levelled(said))
    }

    fn compare(&self, page: &str, line: &str, shown: &[String], said: &[String]) {
        let (is, should) = (said.join("\n"), shown.join("\n"));
        assert!(
            self.is_as_shown(shown, said),
            "{page} is not up to date.\n$ {line}\n--- printed:\n{is}\n--- the page:\n{should}"
        );
    }

    /// The lines that a command prints, and its exit code.
    fn type_line(&mut self, line: &str) -> (Vec<String>, i32) {
        let mut line = line.to_owned();
        for server in &self.servers {
            let [of_page, address] = &server.addresses;
            line = line.replace(of_page, address);
        }
        writeln!(self.input, "{{ {line}\n}} < /dev/null; ended=$?; echo; echo '{MARK}' $ended").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut read = String::new();
            assert_ne!(self.output.read_line(&mut read).unwrap(), 0, "the shell has ended at `{line}`");
            if let Some(code) = read.trim_end().strip_prefix(MARK) {
                while lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                return (lines, code.trim().parse().unwrap());
            }
            // Whether kubectl has to wait depends on the machine.
            if !read.starts_with("Waiting for ") {
                lines.push(self.as_on_the_page(read.trim_end()));
            }
        }
    }

    fn as_on_the_page(&self, line: &str) -> String {
        let mut line = line.replace(self.scratch.path().to_str().unwrap(), HOME);
        for server in &self.servers {
            let [of_page, address] = &server.addresses;
            line = line.replace(address, of_page);
        }
        line
    }

    /// Starts `setpoint up` on a free port; returns what it prints until it is ready.
    fn up(&mut self, arguments: &str) -> Vec<String> {
        let mut arguments: Vec<String> =
            arguments.split_whitespace().map(|word| self.of_the_test(word)).collect();
        let at = arguments.iter().position(|word| word == "--listen");
        let of_page = match at {
            Some(at) => std::mem::replace(&mut arguments[at + 1], "127.0.0.1:0".to_owned()),
            None => {
                arguments.extend(["--listen", "127.0.0.1:0"].map(str::to_owned));
                ADDRESS.to_owned()
            }
        };
        let mut command = Command::new(SETPOINT);
        command.arg("up").args(&arguments).current_dir(self.scratch.path());
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut server = Server { process, addresses: [of_page, String::new()], output };
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(server.output.read_line(&mut line).unwrap(), 0, "setpoint up {arguments:?} ended");
            let line = line.trim_end().to_owned();
            if let Some(ready) = line.strip_prefix("ready https://") {
                ready.split(' ').next().unwrap().clone_into(&mut server.addresses[1]);
                self.servers.push(server);
                return lines.iter().map(|line: &String| self.as_on_the_page(line)).collect();
            }
            lines.push(line);
        }
    }

    fn of_the_test(&self, word: &str) -> String {
        self.servers.iter().fold(word.to_owned(), |word, server| {
            let [of_page, address] = &server.addresses;
            word.replace(of_page, address)
        })
    }
}

/// Whether a line of a page shows that the command fails.
fn is_error(line: &str) -> bool {
    ["Error from server", "error: ", "setpoint: ", "The "].iter().any(|start| line.starts_with(start))
        && !line.ends_with("created")
}

impl Server {
    /// As Ctrl-C does.
    fn stop(mut self) {
        #[expect(unsafe_code, reason = "the standard library sends no signals")]
        // SAFETY: the process is our child and has not been waited for.
        unsafe {
            libc::kill(self.process.id().cast_signed(), libc::SIGINT);
        }
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The store of a server outlives it.
        while self.servers.pop().is_some() {}
        drop(self.shell.kill());
        drop(self.shell.wait());
    }
}
