//! A small interpreter of the commands that jobs and tests run: `sh -c "echo hi; sleep 5; exit 3"`.
//!
//! It knows sequences, branches, loops, variables, whole numbers, the simplest commands, and the files that a
//! container has written itself. Whatever else there is in a command makes its end unknown. It is a pure function of
//! the command and its surroundings, and bounded: by the length of a script, its commands and nesting, by the commands
//! that are carried out, and by a [`Budget`]. A command that needs more than that ends with an error.

mod arithmetic;
mod condition;
mod files;
mod grammar;
mod interpret;
mod log_lines;
mod simple;
mod variables;
mod words;

use crate::budget::{Budget, READ};
use grammar::{Command, Connector, Item, List};
use std::time::Duration;

pub(crate) use files::{Change, Texts, size};
pub(crate) use log_lines::LogLines;
pub(crate) use variables::Variables;

/// What a command does, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShellRun {
    /// What it writes, and when.
    pub(crate) lines: Vec<(Duration, String)>,
    /// What it writes as its termination message.
    pub(crate) message: Option<String>,
    /// The files that it writes and deletes.
    pub(crate) changes: Vec<Change>,
    pub(crate) end: End,
}

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    At(Duration, i32),
    Never,
    Unknown,
}

/// What a command finds where it runs.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings<'a> {
    /// Its environment.
    pub(crate) variables: &'a Variables,
    /// There may be more variables than these.
    pub(crate) has_other_variables: bool,
    pub(crate) files: Texts,
    /// The folders whose files are all in `files`.
    pub(crate) folders: &'a [String],
    /// The file of its termination message.
    pub(crate) termination_log: &'a str,
    /// $RANDOM is drawn from it; without one it is unknown.
    pub(crate) seed: Option<u64>,
}

/// Kubernetes: the default of terminationMessagePath.
pub(crate) const TERMINATION_LOG: &str = "/dev/termination-log";
const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];
/// Longer scripts are not read: a script is read anew for each plan of its pod.
const MOST_BYTES: usize = 32 * 1024;

/// What a command with its arguments does in surroundings of which nothing is known.
pub(crate) fn run(command: &[String], budget: &Budget) -> ShellRun {
    static NOTHING: Variables = Variables::new();
    let (files, folders) = (Texts::new(), &[][..]);
    run_in(
        command,
        Surroundings {
            variables: &NOTHING,
            has_other_variables: true,
            files,
            folders,
            termination_log: TERMINATION_LOG,
            seed: None,
        },
        budget,
    )
}

/// What a container's command with its arguments does.
pub(crate) fn run_in(command: &[String], around: Surroundings<'_>, budget: &Budget) -> ShellRun {
    let mut ends_on_failure = false;
    let read: usize = command.iter().map(|word| word.len().min(MOST_BYTES)).sum();
    let list = match (command, budget.charge(READ * read)) {
        // Nothing can be paid for, not even the first command.
        (_, Err(_)) => vec![Item::unknown()],
        ([shell, option, script, ..], _) if is_shell(shell) && is_script_option(option) => {
            ends_on_failure = option.contains('e');
            grammar::parse(if script.len() > MOST_BYTES { "" } else { script }, 0)
        }
        (words, _) => one_command(words),
    };
    interpret::run(&list, around, ends_on_failure, budget)
}

fn one_command(words: &[String]) -> List {
    let words = words.iter().map(|word| words::quoted(word)).collect();
    let command = Command::Simple { words, target: None };
    vec![Item { connector: Connector::Always, is_negated: false, command }]
}

pub(crate) fn is_shell(word: &str) -> bool {
    SHELLS.contains(&base_name(word))
}

fn is_script_option(word: &str) -> bool {
    word.starts_with('-') && word.ends_with('c')
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;

    fn command(words: &[&str]) -> ShellRun {
        run(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &Budget::new(budget::FULL))
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
            (&["sh", "-c", "set -e; false || true; ! true; sleep 3"], at(3, 0)),
            (&["sh", "-c", "false; exit"], at(0, 1)),
            (&["sh", "-c", "exit -1"], at(0, 255)),
            (&["test", "a", "=", "b"], at(0, 1)),
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
        // The container of `script` has a terminationMessagePath.
        assert_eq!(script("echo bye > /dev/custom-log").message.as_deref(), Some("bye"));
        assert_eq!(script("echo bye > /dev/termination-log").message, None);
    }

    fn script(script: &str) -> ShellRun {
        let variables = [("INDEX", Some("3")), ("EMPTY", Some("")), ("TWO", Some("a b")), ("SECRET", None)];
        script_among(
            script,
            &variables.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).into(),
        )
    }

    fn script_among(script: &str, variables: &Variables) -> ShellRun {
        let around = Surroundings {
            variables,
            has_other_variables: false,
            files: [("/data/old".to_owned(), "1\n".to_owned())].into(),
            folders: &["/data".to_owned()],
            termination_log: "/dev/custom-log",
            seed: Some(0),
        };
        let command = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        run_in(&command, around, &Budget::new(budget::FULL))
    }

    #[test]
    fn scripts_end_by_branches_variables_and_files() {
        let at = |seconds: u64, code: i32| End::At(Duration::from_secs(seconds), code);
        for (text, end) in [
            ("if true; then exit 4; fi", at(0, 4)),
            ("if false; then exit 4; fi", at(0, 0)),
            ("if false; then exit 4; elif [ a = a ]; then exit 5; else exit 6; fi", at(0, 5)),
            ("if false\nthen\n exit 4\nelse\n # no\n exit 6\nfi", at(0, 6)),
            ("if ! false && [ $INDEX -gt 2 ]; then if true; then exit 7; fi; fi", at(0, 7)),
            ("exit $INDEX", at(0, 3)),
            ("exit ${INDEX}", at(0, 3)),
            ("exit ${UNSET:-9}", at(0, 9)),
            ("X=$INDEX; X=\"${X}1\"; exit $X", at(0, 31)),
            ("export X=8; exit $X", at(0, 8)),
            ("exit $(( (INDEX + 1) * 2 % 5 ))", at(0, 3)),
            ("exit $(((1 + INDEX)))", at(0, 4)),
            ("exit $(expr $INDEX + 1)", at(0, 4)),
            ("exit `expr $INDEX - 1`", at(0, 2)),
            ("[ $(expr ${INDEX} % 2) -ne 0 ] && exit 1; exit 0", at(0, 1)),
            ("[ -z \"$EMPTY\" ] && exit 1", at(0, 1)),
            ("[[ $EMPTY == a ]] || exit 1", at(0, 1)),
            ("[ \"$TWO\" = \"a b\" ] || exit 1", at(0, 0)),
            ("for i in $TWO c; do sleep 1; done", at(3, 0)),
            ("for i in $(seq 1 4); do sleep $i; done", at(10, 0)),
            ("i=0; while [ $i -lt 5 ]; do i=$((i+1)); sleep 2; done", at(10, 0)),
            ("while true; do sleep 1; break; done; exit 2", at(1, 2)),
            ("until [ -e /data/old ]; do sleep 1; done; exit 2", at(0, 2)),
            ("while [ ! -e /data/new ]; do sleep 1; done", End::Never),
            ("while true; do curl localhost; done", End::Never),
            ("while true; do i=$((i+1)); echo $i; done", End::Never),
            ("[[ -r /data/old ]] && exit 2", at(0, 2)),
            ("[ -f /data/new ] || exit 2", at(0, 2)),
            ("touch /data/new; [ -f /data/new ] || exit 2", at(0, 0)),
            ("rm -f /data/old; [ -f /data/old ] || exit 2", at(0, 2)),
            ("rm -rf /data/*; [ -f /data/old ] || exit 2", at(0, 2)),
            ("mkdir -p /data/in; [ -d /data/in ] && [ -d /data ] && exit 2", at(0, 2)),
            ("n=$(cat /data/old); echo $((n + 1)) > /data/old; exit $(cat /data/old)", at(0, 2)),
            ("cat /data/new 2>/dev/null || exit 2", at(0, 2)),
            ("cat /etc/passwd || exit 2", End::Unknown),
            ("[ -f /etc/passwd ] && exit 2", End::Unknown),
            ("echo $SECRET; exit 2", at(0, 2)),
            ("if [ $SECRET = a ]; then exit 2; fi", End::Unknown),
            ("if [ $HOME = a ]; then exit 2; fi", End::Unknown),
            ("X=$(date +%s); sleep 1; exit 2", at(1, 2)),
            ("X=$(date +%s); exit $X", End::Unknown),
            ("if true; then cat x | grep y; fi", End::Unknown),
            ("if false; then cat x | grep y; fi; exit 2", at(0, 2)),
            ("case x in x) exit 2;; esac", End::Unknown),
            ("if true; then exit 2", End::Unknown),
            ("f() { exit 2; }; f", End::Unknown),
            ("(exit 2)", End::Unknown),
            ("sleep 1 & wait", End::Unknown),
            ("fi", End::Unknown),
            ("A=1 env", End::Unknown),
            ("exit $((1 / 0))", End::Unknown),
            ("X=a; while true; do X=$X$X; done", End::Never),
        ] {
            assert_eq!(script(text).end, end, "{text}");
        }
    }

    #[test]
    fn limits_bound_scripts() {
        let unknown = |text: String| assert_eq!(script(&text).end, End::Unknown, "{}", &text[..20]);
        unknown("true;".repeat(501));
        unknown("# long\n".repeat(10_000));
        unknown(format!("{}true{}", "if true; then ".repeat(17), "; fi".repeat(17)));
        unknown(format!("exit {}1{}", "$(echo ".repeat(17), ")".repeat(17)));
        unknown(
            "for a in 1 2 3 4 5 6 7 8 9 0; do for b in 1 2 3 4 5 6 7 8 9 0; do \
                 for c in 1 2 3 4 5 6 7 8 9 0; do true; done; done; done"
                .to_owned(),
        );
        let many =
            script("for i in $(seq 1 200); do touch /data/$i; done; [ -e /data/99 ] && [ ! -e /data/200 ]");
        assert_eq!(many.end, End::At(Duration::ZERO, 0));
        assert_eq!(many.changes.len(), 99, "one of 100 is there already");
        // Every beginning of a script has some end.
        let whole = "if [ \"$(expr $((1+2)) % 2)\" -ne 0 ]; then echo 'a' > /data/x; else for i in `seq 2`; do touch ${i:-1}; done; fi";
        for length in 0..whole.len() {
            script(&whole[..length]);
        }
    }

    /// The bytes of all that a run has left behind.
    fn held(run: &ShellRun) -> usize {
        let lines = run.lines.iter().map(|(_, line)| line.len());
        let changes =
            run.changes.iter().map(|(_, path, text)| path.len() + text.as_ref().map_or(0, String::len));
        lines.chain(changes).sum()
    }

    #[test]
    fn a_script_that_needs_too_much_ends_with_an_error() {
        let many: Variables = (0..8000).map(|at| (format!("V{at}"), Some("1".to_owned()))).collect();
        let thousands = format!("V0={}", "$()".repeat(9000));
        for text in [
            // Words, each of which changes a file.
            format!(
                "echo {} > /tmp/a; while true; do touch {}; done",
                "x".repeat(4090),
                "/tmp/a ".repeat(1800)
            ),
            format!("while true; do sleep 1; touch {}; done", "/tmp/a ".repeat(1800)),
            format!("while true; do i=$((i+1)); rm {}; done", "/data/old ".repeat(1800)),
            format!("while true; do cat {} > /tmp/b; done", "/data/old ".repeat(1800)),
            format!("while true; do [ -e /data/old ] && touch {}; done", "/tmp/a ".repeat(1800)),
            // Captures, which cost something even if they are empty.
            format!("while true; do echo x{}; done", "$()".repeat(9000)),
            format!("while true; do {thousands}; echo; done"),
            format!("while true; do echo > {}; touch /tmp/a; done", "$()".repeat(9000)),
            // Arithmetic with many variables.
            format!("while true; do echo $((V0{})); done", "+V1".repeat(9000)),
            // Expansions that are split into many words.
            "A='a a a a a a a a'; B=\"$A $A $A $A $A $A $A $A\"; C=\"$B $B $B $B $B $B $B $B\"; \
             while true; do echo $C $C $C $C; done"
                .to_owned(),
        ] {
            let run = script_among(&text, &many);
            assert!(matches!(run.end, End::At(_, budget::EXIT_CODE)), "{}: {:?}", &text[..40], run.end);
            assert_eq!(
                run.lines.last().map(|(_, line)| line.as_str()),
                Some(budget::MESSAGE),
                "{}",
                &text[..40]
            );
            assert!(held(&run) < 2 << 20, "{}: {} bytes", &text[..40], held(&run));
        }
    }

    #[test]
    fn a_file_that_is_written_often_changes_once_at_a_time() {
        let run =
            script("i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo $i > /data/x; done; sleep 1; rm /data/x");
        let changed: Vec<_> =
            run.changes.iter().map(|(at, _, text)| (at.as_secs(), text.as_deref())).collect();
        assert_eq!(changed, [(0, Some("100\n")), (1, None)]);
    }

    #[test]
    fn words_that_are_repeated_thousands_of_times_do_not_nest() {
        let at = |code: i32| End::At(Duration::ZERO, code);
        assert_eq!(script(&format!("[ {} a = a ]", "! ".repeat(16_000))).end, at(0));
        assert_eq!(script(&format!("{} exit 3", "exec ".repeat(4000))).end, at(3));
        assert_eq!(script(&"exec ".repeat(4000)).end, End::Unknown);
        assert_eq!(script(&format!("{} false", "! ".repeat(16_000))).end, at(1));
        assert_eq!(script(&format!("exit $(( {} 1 ))", "- ".repeat(16_000))).end, End::Unknown);
    }

    #[test]
    fn loops_write_a_line_each_round() {
        let run = script("while true; do echo tick; sleep 5; done");
        assert_eq!(run.end, End::Never);
        assert_eq!(run.lines[2], (Duration::from_secs(10), "tick".to_owned()));
        let lines = script("echo $INDEX '$INDEX' \"$INDEX-$TWO\" $SECRET; printf 'x\\ny\\n'").lines;
        let texts: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(texts, ["3 $INDEX 3-a b $SECRET", "x", "y"]);
    }
}
