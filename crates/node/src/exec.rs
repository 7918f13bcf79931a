//! Commands that are executed in simulated containers.

use crate::{
    script::{ExecResult, Script},
    shell::{self, End},
};
use k8s_openapi::api::core::v1::Pod;
use std::time::Duration;

/// The exit code of shells for commands that do not exist.
const NOT_FOUND: i32 = 127;

/// What a command gives in a container: as the script says, or as the simplest commands do.
pub fn exec(pod: &Pod, container: &str, command: &[String]) -> ExecResult {
    let plan = plan(pod, container, command);
    let text = |wanted: OutputStream| {
        let outputs = plan.outputs.iter().filter(|(_, output, _)| *output == wanted);
        outputs.map(|(_, _, text)| text.as_str()).collect()
    };
    let (stdout, stderr) = (text(OutputStream::Stdout), text(OutputStream::Stderr));
    ExecResult { stdout, stderr, exit_code: plan.end.map_or(NOT_FOUND, |(_, code)| code) }
}

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
pub(crate) fn input(pod: &Pod, container: &str, command: &[String]) -> StdinUse {
    let script = Script::of(pod).unwrap_or_default();
    match command {
        [name] if script.part(container).exec.contains_key(name) => StdinUse::Ignored,
        [name] if name == "cat" => StdinUse::Copied,
        [name] if shell::is_shell(name) => StdinUse::Executed,
        _ => StdinUse::Ignored,
    }
}

pub(crate) fn plan(pod: &Pod, container: &str, command: &[String]) -> ExecPlan {
    let script = Script::of(pod).unwrap_or_default();
    let scripted = &script.part(container).exec;
    let text = command.join(" ");
    // `kubectl exec -- sh -c TEXT` is found by its text alone, too.
    if let Some(result) = scripted.get(&text).or_else(|| scripted.get(command.last()?)) {
        let outputs = [(OutputStream::Stdout, &result.stdout), (OutputStream::Stderr, &result.stderr)];
        let outputs = outputs.into_iter().filter(|(_, text)| !text.is_empty());
        let outputs = outputs.map(|(output, text)| (Duration::ZERO, output, text.clone())).collect();
        return ExecPlan { outputs, end: Some((Duration::ZERO, result.exit_code)) };
    }
    let run = shell::run(command);
    let lines =
        run.lines.into_iter().map(|(at, line)| (at, OutputStream::Stdout, format!("{line}\n"))).collect();
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
            (&["sleep", "inf"], "", NOT_FOUND, StdinUse::Ignored),
            (&["cat"], "", NOT_FOUND, StdinUse::Copied),
            (&["/bin/sh"], "", NOT_FOUND, StdinUse::Executed),
            (&["ash"], "none", 0, StdinUse::Ignored),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let result = exec(&pod, "app", &command);
            assert_eq!((result.stdout.as_str(), result.exit_code), (stdout, code), "{command:?}");
            assert_eq!(input(&pod, "app", &command), used, "{command:?}");
        }
    }
}
