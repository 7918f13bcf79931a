//! Simple commands: `echo hi`, `sleep 5`, `test -f FILE`, `expr 1 + 2`.

use super::{
    arithmetic, base_name, condition,
    interpret::{Expanded, Interrupt, Shell},
};
use std::time::Duration;

/// Commands that change nothing that can be seen from outside.
const SILENT: [&str; 10] = [":", "true", "cd", "unset", "set", "trap", "umask", "chmod", "chown", "sync"];
/// `seq` writes so many numbers: a run has no more steps.
const MOST_NUMBERS: usize = 1_000;
/// The status of `expr` when its result is 0.
const EXPR_IS_ZERO: i32 = 1;

/// Carries out one command, and sets the status.
pub(super) fn carry_out(
    shell: &mut Shell<'_>,
    command: &Expanded,
    target: Option<&(String, bool)>,
) -> Result<(), Interrupt> {
    let words: Vec<&str> = command.fields.iter().map(String::as_str).collect();
    let earlier = std::mem::replace(&mut shell.status, 0);
    // Not by recursion: there may be thousands.
    let execs = words.iter().take_while(|word| base_name(word) == "exec").count();
    match execs.min(words.len().saturating_sub(1)) {
        0 => carry_out_one(shell, &words, command.is_unknown, earlier, target),
        _ if command.is_unknown => Err(Interrupt::Unknown),
        execs => {
            carry_out_one(shell, &words[execs..], false, 0, target)?;
            Err(Interrupt::Exit(shell.status))
        }
    }
}

fn carry_out_one(
    shell: &mut Shell<'_>,
    words: &[&str],
    is_unknown: bool,
    earlier: i32,
    target: Option<&(String, bool)>,
) -> Result<(), Interrupt> {
    let Some((first, rest)) = words.split_first() else {
        // `> FILE` alone.
        return if target.is_some() { shell.output("", target) } else { Ok(()) };
    };
    let name = base_name(first);
    // Unknown values may be seen in a log, but nothing may depend on them.
    let is_shown = matches!(name, "echo" | "printf") && target.is_none() && shell.captured.is_none();
    if is_unknown && !is_shown && !SILENT.contains(&name) {
        return Err(Interrupt::Unknown);
    }
    match (name, rest) {
        ("exit", []) => return Err(Interrupt::Exit(earlier)),
        ("exit", [code, ..]) => {
            let code: i32 = code.parse().map_err(|_| Interrupt::Unknown)?;
            return Err(Interrupt::Exit(code.rem_euclid(256)));
        }
        ("break", []) => return Err(Interrupt::Break),
        ("continue", []) => return Err(Interrupt::Continue),
        ("false", _) => shell.status = 1,
        ("sleep", ["inf" | "infinity", ..]) | ("pause", _) | ("tail", ["-f" | "-F", ..]) => {
            return Err(Interrupt::Never);
        }
        ("sleep", times) => shell.now = shell.now.saturating_add(total(times).ok_or(Interrupt::Unknown)?),
        ("echo", ["-n", text @ ..]) => shell.output(&text.join(" "), target)?,
        ("echo", ["-e", text @ ..] | text) => shell.output(&format!("{}\n", text.join(" ")), target)?,
        ("printf", [text, ..]) => shell.output(&text.replace("\\n", "\n"), target)?,
        ("date", _) if shell.captured.is_none() && target.is_none() => {}
        ("set", options) => {
            let is_on = |it: &&str| it.starts_with('-') && !it.starts_with("--") && it.contains('e');
            shell.ends_on_failure |= options.first().is_some_and(is_on);
        }
        ("test", rest) => check(shell, rest, false)?,
        ("[", [rest @ .., "]"]) => check(shell, rest, false)?,
        ("[[", [rest @ .., "]]"]) => check(shell, rest, true)?,
        ("expr" | "seq" | "hostname", rest) => {
            let text = computed(shell, name, rest).ok_or(Interrupt::Unknown)?;
            shell.output(&text, target)?;
        }
        ("touch" | "mkdir" | "rm", files) => change(shell, name, files)?,
        ("cat", files @ [_, ..]) => cat(shell, files, target)?,
        (silent, _) if SILENT.contains(&silent) => {
            if target.is_some() {
                shell.output("", target)?;
            }
        }
        _ => return Err(Interrupt::Unknown),
    }
    Ok(())
}

/// What a command writes that only computes; `None` if that is not known.
fn computed(shell: &mut Shell<'_>, name: &str, rest: &[&str]) -> Option<String> {
    match (name, rest) {
        ("expr", [left, operator, right]) => {
            let value = expr(left, operator, right)?;
            shell.status = if value == 0 { EXPR_IS_ZERO } else { 0 };
            Some(format!("{value}\n"))
        }
        ("seq", bounds) => sequence(bounds),
        ("hostname", []) => shell.variables.get("HOSTNAME")?.as_ref().map(|host| format!("{host}\n")),
        _ => None,
    }
}

fn check(shell: &mut Shell<'_>, words: &[&str], has_patterns: bool) -> Result<(), Interrupt> {
    // A budget that was exceeded ends the command later.
    let file_test = |test: &str, path: &str| shell.files.test(test, path).ok()?;
    shell.status = condition::status(words, has_patterns, &file_test).ok_or(Interrupt::Unknown)?;
    Ok(())
}

fn change(shell: &mut Shell<'_>, name: &str, files: &[&str]) -> Result<(), Interrupt> {
    let now = shell.now;
    for file in files.iter().filter(|it| !it.starts_with('-')) {
        let is_done = match name {
            "touch" => shell.files.write(now, file, "", true)?,
            "mkdir" => shell.files.write(now, &format!("{}/", file.trim_end_matches('/')), "", false)?,
            _ => {
                shell.files.delete(now, file)?;
                true
            }
        };
        if !is_done {
            shell.status = 1;
        }
    }
    Ok(())
}

fn cat(shell: &mut Shell<'_>, files: &[&str], target: Option<&(String, bool)>) -> Result<(), Interrupt> {
    let mut text = String::new();
    for file in files {
        match shell.files.read(file)?.ok_or(Interrupt::Unknown)? {
            Some(content) => {
                shell.budget.charge(content.len())?;
                text.push_str(content);
            }
            None => shell.status = 1,
        }
    }
    if text.is_empty() && target.is_none() { Ok(()) } else { shell.output(&text, target) }
}

fn expr(left: &str, operator: &str, right: &str) -> Option<i64> {
    let mut operator = operator.chars();
    let value = arithmetic::apply(left.parse().ok()?, operator.next()?, right.parse().ok()?)?;
    operator.next().is_none().then_some(value)
}

/// The lines of `seq LAST` or `seq FIRST LAST`.
fn sequence(bounds: &[&str]) -> Option<String> {
    let (first, last): (i64, i64) = match bounds {
        [last] => (1, last.parse().ok()?),
        [first, last] => (first.parse().ok()?, last.parse().ok()?),
        _ => return None,
    };
    let numbers = || (first..=last).take(MOST_NUMBERS + 1);
    (numbers().count() <= MOST_NUMBERS).then(|| numbers().map(|it| format!("{it}\n")).collect())
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
    if times.is_empty() {
        None
    } else {
        times.iter().map(one).try_fold(Duration::ZERO, |sum, it| sum.checked_add(it?))
    }
}
