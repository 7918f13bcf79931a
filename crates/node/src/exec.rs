//! Commands that are executed in simulated containers.

use crate::{
    script::{ExecResult, Script},
    shell::{self, End},
};
use k8s_openapi::api::core::v1::Pod;

/// The exit code of shells for commands that do not exist.
const NOT_FOUND: i32 = 127;

/// What a command gives in a container: as the script says, or as the simplest commands do.
pub fn exec(pod: &Pod, container: &str, command: &[String]) -> ExecResult {
    let script = Script::of(pod).unwrap_or_default();
    let scripted = &script.part(container).exec;
    let text = command.join(" ");
    // `kubectl exec -- sh -c TEXT` is found by its text alone, too.
    if let Some(result) = scripted.get(&text).or_else(|| scripted.get(command.last()?)) {
        return result.clone();
    }
    let run = shell::run(command);
    match run.end {
        End::At(_, exit_code) => {
            let stdout = run.lines.into_iter().map(|(_, line)| format!("{line}\n")).collect();
            ExecResult { stdout, stderr: String::new(), exit_code }
        }
        End::Never | End::Unknown => {
            let name = command.first().map(String::as_str).unwrap_or_default();
            let stderr = format!("{name}: not found on a simulated node: add it to `exec` in the script\n");
            ExecResult { stdout: String::new(), stderr, exit_code: NOT_FOUND }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_give_what_the_script_says() {
        let script = "app: {exec: {cat /etc/hosts: {stdout: hosts, exitCode: 2}}}";
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"annotations": {"setpoint.dev/script": script}}}))
                .unwrap();
        for (command, stdout, code) in [
            (&["cat", "/etc/hosts"][..], "hosts", 2),
            (&["sh", "-c", "cat /etc/hosts"], "hosts", 2),
            (&["echo", "hi"], "hi\n", 0),
            (&["psql"], "", NOT_FOUND),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let result = exec(&pod, "app", &command);
            assert_eq!((result.stdout.as_str(), result.exit_code), (stdout, code), "{command:?}");
        }
    }
}
