//! Commands that are executed in simulated containers.

use crate::{
    budget::Budget,
    script::{ExecResult, Part},
    shell::{self, End},
    simulation::Simulation,
};
use std::time::Duration;

/// The exit code of shells for commands that do not exist.
const NOT_FOUND: i32 = 127;

/// Where a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

/// What a command writes and when it ends, counted from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExecPlan {
    pub(crate) outputs: Vec<(Duration, OutputStream, String)>,
    /// `None` if it runs until the client leaves.
    pub(crate) end: Option<(Duration, i32)>,
}

/// What a command does with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdinUse {
    Ignored,
    /// As `cat`: each byte is written again, to the end of the input.
    Copied,
    /// As `sh`: each line is a command.
    Executed,
}

/// How a command uses its input. Only commands without arguments that a script does not know.
pub(crate) fn input(simulation: &Simulation<'_>, container: &str, command: &[String]) -> StdinUse {
    match command {
        [name] if simulation.part(container).exec.contains_key(name) => StdinUse::Ignored,
        [name] if name == "cat" => StdinUse::Copied,
        [name] if shell::is_shell(name) => StdinUse::Executed,
        _ => StdinUse::Ignored,
    }
}

/// The result that a script has for a command.
fn scripted<'a>(part: &'a Part, command: &[String]) -> Option<&'a ExecResult> {
    // `kubectl exec -- sh -c TEXT` is found by its text alone, too.
    part.exec.get(&command.join(" ")).or_else(|| part.exec.get(command.last()?))
}

/// Whether a command fails each time, as the script says or the simplest commands do.
pub(crate) fn always_fails(part: &Part, command: &[String], budget: &Budget) -> bool {
    match scripted(part, command) {
        Some(result) => result.exit_code != 0,
        None => matches!(shell::run(command, budget).end, End::At(_, code) if code != 0),
    }
}

/// What a command gives in a container: as the script says, or as the simplest commands do.
pub(crate) fn plan(simulation: &Simulation<'_>, container: &str, command: &[String]) -> ExecPlan {
    if let Some(result) = scripted(simulation.part(container), command) {
        let outputs = [(OutputStream::Stdout, &result.stdout), (OutputStream::Stderr, &result.stderr)];
        let outputs = outputs.into_iter().filter(|(_, text)| !text.is_empty());
        let outputs = outputs.map(|(output, text)| (Duration::ZERO, output, text.clone())).collect();
        return ExecPlan { outputs, end: Some((Duration::ZERO, result.exit_code)) };
    }
    let (run, is_over_budget) =
        simulation.beside(|budget| (shell::run(command, budget), budget.is_exceeded()));
    let line = |(at, line)| (at, OutputStream::Stdout, format!("{line}\n"));
    let mut lines: Vec<_> = run.lines.into_iter().map(line).collect();
    if let Some((_, stream, _)) = lines.last_mut().filter(|_| is_over_budget) {
        *stream = OutputStream::Stderr;
    }
    match run.end {
        End::At(after, code) => ExecPlan { outputs: lines, end: Some((after, code)) },
        End::Never => ExecPlan { outputs: lines, end: None },
        End::Unknown => {
            let name = command.first().map(String::as_str).unwrap_or_default();
            let problem = format!(
                "{name}: no container runs on a simulated node: add the command to `exec` in the annotation \
                 setpoint.dev/script of the pod\n"
            );
            let outputs = vec![(Duration::ZERO, OutputStream::Stderr, problem)];
            ExecPlan { outputs, end: Some((Duration::ZERO, NOT_FOUND)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{self, FULL};
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn commands_give_what_the_script_says() {
        let script = "app: {exec: {cat /etc/hosts: {stdout: hosts, exitCode: 2}, ash: {stdout: none}}}";
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"annotations": {"setpoint.dev/script": script}}}))
                .unwrap();
        for (command, stdout, code, used) in [
            (&["cat", "/etc/hosts"][..], "hosts", 2, StdinUse::Ignored),
            (&["sh", "-c", "cat /etc/hosts"], "hosts", 2, StdinUse::Ignored),
            (&["echo", "hi"], "hi\n", 0, StdinUse::Ignored),
            (&["psql"], "", NOT_FOUND, StdinUse::Ignored),
            (&["sleep", "inf"], "", -1, StdinUse::Ignored),
            (&["cat"], "", NOT_FOUND, StdinUse::Copied),
            (&["/bin/sh"], "", NOT_FOUND, StdinUse::Executed),
            (&["ash"], "none", 0, StdinUse::Ignored),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let simulation = Simulation::new(&pod, FULL);
            let plan = plan(&simulation, "app", &command);
            let output = plan.outputs.iter().filter(|(_, stream, _)| *stream == OutputStream::Stdout);
            assert_eq!(output.map(|(_, _, text)| text.as_str()).collect::<String>(), stdout, "{command:?}");
            assert_eq!(plan.end.map_or(-1, |(_, code)| code), code, "{command:?}");
            assert_eq!(input(&simulation, "app", &command), used, "{command:?}");
        }
    }

    #[test]
    fn a_command_that_needs_too_much_ends_with_an_error() {
        let pod = Pod::default();
        let script = format!("while true; do touch {}; done", "/tmp/a ".repeat(1800));
        let simulation = Simulation::new(&pod, FULL);
        let plan = plan(&simulation, "app", &["sh".to_owned(), "-c".to_owned(), script]);
        assert_eq!(plan.end, Some((Duration::ZERO, budget::EXIT_CODE)));
        let error = (Duration::ZERO, OutputStream::Stderr, format!("{}\n", budget::MESSAGE));
        assert_eq!(plan.outputs, [error]);
        assert!(simulation.is_over_budget());
    }
}
