//! Examples in the help of `setpoint testing` and its commands; other commands have theirs beside their flags.

use clap::Command;

const TESTING: &str = "\
Examples:
  eval $(setpoint testing fork --export)  a copy of the cluster for this shell
  setpoint testing snapshot clean         keep the state
  setpoint testing restore clean          and take the cluster back to it";
/// By the names of the commands.
const VERBS: [(&str, &str); 8] = [
    (
        "fork",
        "\
Examples:
  eval $(setpoint testing fork --export)        a copy for this shell
  setpoint testing fork blue --snapshot clean   one with a name, as the cluster was then
  setpoint testing fork blue --delete           end it",
    ),
    ("snapshot", "Examples:\n  setpoint testing snapshot clean"),
    ("restore", "Examples:\n  setpoint testing restore clean"),
    ("reset", "Examples:\n  setpoint testing reset"),
    (
        "settle",
        "\
Examples:
  setpoint testing settle
  setpoint testing settle --quiet 200ms --timeout 1m",
    ),
    (
        "clock",
        "\
Examples:
  setpoint testing clock                what time it is
  setpoint testing clock --freeze       from now on it stands still
  setpoint testing clock --advance 24h  a day passes at once",
    ),
    (
        "fault",
        "\
Examples:
  setpoint testing fault -f conflicts.yaml   what its Fault says fails from now on
  setpoint testing fault --list              how many requests each has hit
  setpoint testing fault --delete conflicts  end it",
    ),
    (
        "trace",
        "\
Examples:
  setpoint testing trace --limit 20
  setpoint testing trace --verb write --resource pods",
    ),
];

/// The command line with these examples.
pub(crate) fn add(command: Command) -> Command {
    command.mut_subcommand("testing", |testing| {
        VERBS.into_iter().fold(testing.after_help(TESTING), |testing, (name, examples)| {
            testing.mut_subcommand(name, |verb| verb.after_help(examples))
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::{Cli, command_line};
    use clap::{Command, Parser};

    /// Where a command ends in a line of a shell, or before what is said about it.
    const ENDS: [&str; 5] = ["  ", " | ", " > ", " && ", ")"];

    /// The words of the `setpoint …` in a line, as a shell would pass them.
    fn words(line: &str) -> Option<Vec<String>> {
        let command = &line[line.find("setpoint ")?..];
        let end = ENDS.iter().filter_map(|end| command.find(end)).min().unwrap_or(command.len());
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in command[..end].chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut()?.push(letter),
            }
        }
        Some(words)
    }

    /// Each command below this one, with the words that lead to it.
    fn visit(command: &Command, path: &[String], see: &mut impl FnMut(&Command, &[String])) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let path = [path, &[below.get_name().to_owned()]].concat();
            see(below, &path);
            visit(below, &path, see);
        }
    }

    #[test]
    fn the_help_of_every_command_has_examples_that_it_accepts() {
        let mut seen = 0;
        visit(&command_line(), &[], &mut |command, path| {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) =
                help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path:?} has no examples"));
            for line in examples.lines() {
                let words = words(line).unwrap_or_else(|| panic!("{path:?}: {line} does not call setpoint"));
                assert!(words[1..].starts_with(path), "{path:?} shows another command: {line}");
                if let Err(problem) = Cli::try_parse_from(&words) {
                    panic!("{path:?}: {line}: {problem}");
                }
                seen += 1;
            }
        });
        assert!(seen > 50, "{seen} examples");
    }

    #[test]
    fn the_words_of_an_example_are_those_that_a_shell_passes() {
        for (line, expected) in [
            ("  setpoint get pods   the pods", Some(vec!["setpoint", "get", "pods"])),
            ("  eval \"$(setpoint assets)\" && go test", Some(vec!["setpoint", "assets"])),
            ("  cat a | setpoint wait --for=x='a b' > c", Some(vec!["setpoint", "wait", "--for=x=a b"])),
            ("  kubectl get pods", None),
        ] {
            assert_eq!(words(line), expected.map(|words| words.into_iter().map(str::to_owned).collect()));
        }
    }
}
