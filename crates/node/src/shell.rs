//! A small interpreter of the commands that jobs and tests run: `sh -c "echo hi; sleep 5; exit 3"`.
//!
//! It knows sequences with `;`, `&&` and `||`, and the simplest commands. Whatever else there is in a command
//! makes its end unknown.

mod words;

use std::time::Duration;
use words::{Connector, Statement};

/// What a command does, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShellRun {
    /// What it writes, and when.
    pub(crate) lines: Vec<(Duration, String)>,
    /// What it writes as its termination message.
    pub(crate) message: Option<String>,
    pub(crate) end: End,
}

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    At(Duration, i32),
    Never,
    Unknown,
}

/// What one simple command does.
enum Effect {
    Status(i32),
    Line(String),
    Sleep(Duration),
    Exit(Option<i32>),
    Forever,
    Unknown,
}

const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];
/// Commands that change nothing that can be seen from outside.
const SILENT: [&str; 14] = [
    ":", "true", "cd", "export", "unset", "set", "trap", "umask", "mkdir", "touch", "rm", "chmod", "chown",
    "sync",
];
/// Kubernetes: the default of terminationMessagePath.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// What a container's command with its arguments does.
pub(crate) fn run(command: &[String]) -> ShellRun {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words.as_slice() {
        [shell, option, script, ..] if is_shell(shell) && is_script_option(option) => {
            interpret(&words::statements(script), option.contains('e'))
        }
        _ => {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            interpret(&[Statement { connector: Connector::Always, words, target: None }], false)
        }
    }
}

fn is_shell(word: &str) -> bool {
    SHELLS.contains(&base_name(word))
}

fn is_script_option(word: &str) -> bool {
    word.starts_with('-') && word.ends_with('c')
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn interpret(statements: &[Statement], ends_on_failure: bool) -> ShellRun {
    let mut run = ShellRun { lines: Vec::new(), message: None, end: End::Unknown };
    let (mut now, mut status, mut ends_on_failure) = (Duration::ZERO, 0, ends_on_failure);
    for statement in statements {
        let is_skipped = match statement.connector {
            Connector::Always => false,
            Connector::And => status != 0,
            Connector::Or => status == 0,
        };
        if is_skipped {
            continue;
        }
        let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
        ends_on_failure |= matches!(words.as_slice(), ["set", "-e" | "-ex" | "-xe" | "-eu" | "-euo", ..]);
        status = 0;
        match simple(&words) {
            Effect::Status(code) => status = code,
            Effect::Line(text) => match statement.target.as_deref() {
                None => run.lines.push((now, text)),
                Some(TERMINATION_LOG) => run.message = Some(text),
                Some(_) => {}
            },
            Effect::Sleep(duration) => now = now.saturating_add(duration),
            Effect::Exit(code) => {
                run.end = End::At(now, code.unwrap_or(status));
                return run;
            }
            Effect::Forever => {
                run.end = End::Never;
                return run;
            }
            Effect::Unknown => return run,
        }
        if ends_on_failure && status != 0 {
            break;
        }
    }
    run.end = if statements.is_empty() { End::Unknown } else { End::At(now, status) };
    run
}

fn simple(words: &[&str]) -> Effect {
    let [first, rest @ ..] = words else { return Effect::Status(0) };
    match (base_name(first), rest) {
        ("exec", rest) => match simple(rest) {
            Effect::Status(code) => Effect::Exit(Some(code)),
            other => other,
        },
        ("exit", []) => Effect::Exit(None),
        ("exit", [code, ..]) => code.parse().map_or(Effect::Unknown, |code| Effect::Exit(Some(code))),
        ("false", _) => Effect::Status(1),
        ("sleep", ["inf" | "infinity", ..]) | ("pause", _) | ("tail", ["-f" | "-F", ..]) => Effect::Forever,
        ("sleep", times) => total(times).map_or(Effect::Unknown, Effect::Sleep),
        ("echo", ["-n" | "-e", text @ ..]) => Effect::Line(text.join(" ")),
        ("echo", text) => Effect::Line(text.join(" ")),
        ("printf", [text, ..]) => Effect::Line(text.trim_end_matches("\\n").to_owned()),
        ("date", _) => Effect::Status(0),
        ("while", ["true" | ":" | "[", ..]) | ("until", ["false", ..]) => Effect::Forever,
        (silent, _) if SILENT.contains(&silent) => Effect::Status(0),
        _ => Effect::Unknown,
    }
}

/// The sum of the arguments of `sleep`.
fn total(times: &[&str]) -> Option<Duration> {
    let one = |time: &&str| -> Option<Duration> {
        let digits = time.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        let factor = match &time[digits.len()..] {
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        Duration::try_from_secs_f64(digits.parse::<f64>().ok()? * factor).ok()
    };
    if times.is_empty() { None } else { times.iter().map(one).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> ShellRun {
        run(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn commands_end_as_they_would_in_a_shell() {
        let at = |seconds: u64, code: i32| End::At(Duration::from_secs(seconds), code);
        for (words, end) in [
            (&["true"][..], at(0, 0)),
            (&["/bin/false"], at(0, 1)),
            (&["sleep", "5"], at(5, 0)),
            (&["sleep", "2m"], at(120, 0)),
            (&["sleep", "infinity"], End::Never),
            (&["sh", "-c", "exit 3"], at(0, 3)),
            (&["/bin/sh", "-c", "sleep 5; exit 2"], at(5, 2)),
            (&["sh", "-c", "echo hi && sleep 3"], at(3, 0)),
            (&["sh", "-c", "false && sleep 3"], at(0, 1)),
            (&["sh", "-c", "false || sleep 3"], at(3, 0)),
            (&["sh", "-c", "false; echo 'a; b'"], at(0, 0)),
            (&["sh", "-ec", "false; sleep 3"], at(0, 1)),
            (&["sh", "-c", "set -e\nfalse\nsleep 3"], at(0, 1)),
            (&["sh", "-c", "exec sleep 7"], at(7, 0)),
            (&["sh", "-c", "trap exit TERM; while true; do sleep 1; done"], End::Never),
            (&["sh", "-c", "if test -f x; then exit 1; fi"], End::Unknown),
            (&["sh", "-c", "cat x | grep y"], End::Unknown),
            (&["perl", "-wle", "print 1"], End::Unknown),
            (&["nginx", "-g", "daemon off;"], End::Unknown),
            (&["tail", "-f", "/dev/null"], End::Never),
            (&["date"], at(0, 0)),
            (&[], at(0, 0)),
        ] {
            assert_eq!(command(words).end, end, "{words:?}");
        }
    }

    #[test]
    fn output_goes_to_the_log_or_into_the_termination_message() {
        let run =
            command(&["sh", "-c", "echo one; sleep 2; echo \"two  three\"; echo bye > /dev/termination-log"]);
        let line = |seconds, text: &str| (Duration::from_secs(seconds), text.to_owned());
        assert_eq!(run.lines, [line(0, "one"), line(2, "two  three")]);
        assert_eq!(run.message.as_deref(), Some("bye"));
    }
}
