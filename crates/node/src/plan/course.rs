//! What a container does in one run: by its script, by its command, by its image.

use super::Role;
use crate::{
    budget::{self, Budget, OverBudget},
    environment, image,
    script::Part,
    shell::{self, Change, End, LogLines, ShellRun, Texts},
    simulation::Simulation,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use std::time::Duration;

/// One run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    /// How long after its start it ends, and with which code; `None` if it runs until it is stopped.
    pub(crate) end: Option<(Duration, i32)>,
    pub(crate) is_oom_killed: bool,
    /// Its termination message.
    pub(crate) message: Option<String>,
    /// What it writes to its log, and how long after its start.
    pub(crate) lines: Vec<(Duration, String)>,
    /// The files on its node that it writes and deletes.
    pub(crate) changes: Vec<Change>,
}

/// A container that crashes in a loop runs so long unless its script says how long.
const CRASH_AFTER: Duration = Duration::from_secs(1);
/// Kubernetes: the exit code of a container that was killed for its use of memory.
const KILLED: i32 = 137;

/// So much of a termination message.
// Kubernetes: MaxContainerTerminationMessageLength.
const MESSAGE_BYTES: usize = 4096;

/// What run number `run` of a container does, the first of which is 0, on a node that has had these files when it
/// started. One that costs too much ends with an error at once.
pub(crate) fn course(
    simulation: &Simulation<'_>,
    at: usize,
    run: i32,
    on_node: &Texts,
    budget: &Budget,
) -> Course {
    let known = by_command(simulation, at, run, on_node, budget).unwrap_or_else(|OverBudget| ShellRun {
        lines: vec![(Duration::ZERO, budget::MESSAGE.to_owned())],
        message: None,
        changes: Vec::new(),
        end: End::At(Duration::ZERO, budget::EXIT_CODE),
    });
    let (pod, container, role) = (simulation.pod(), simulation.container(at), simulation.role(at));
    let part = simulation.part(&container.name);
    let by_command = match known.end {
        End::At(after, code) => Some((after, code)),
        End::Never => None,
        End::Unknown => ends_by_itself(pod, container, role).then_some((Duration::ZERO, 0)),
    };
    let has_end = part.exit_code.is_some() || part.after.is_some() || part.crash_loop || part.oom_killed;
    let is_over = part.times.is_some_and(|times| run >= times);
    let end = match (has_end, is_over) {
        (true, false) => Some(scripted_end(part)),
        // The runs that fail are over: a job ends well, a server stays.
        (true, true) => is_job(pod, role).then_some((Duration::ZERO, 0)),
        (false, _) => by_command,
    };
    let is_oom_killed = part.oom_killed && has_end && !is_over;
    let lines = if part.logs.is_empty() { known.lines } else { scripted_lines(part) };
    let message = part.message.as_ref().or(known.message.as_ref());
    let message = message.map(|text| budget::ending(text, MESSAGE_BYTES).to_owned());
    Course { end, is_oom_killed, message, lines, changes: known.changes }
}

/// What the command of a container does, with the changes of files as the node sees them.
fn by_command(
    simulation: &Simulation<'_>,
    at: usize,
    run: i32,
    on_node: &Texts,
    budget: &Budget,
) -> Result<ShellRun, OverBudget> {
    let container = simulation.container(at);
    if container.command.iter().chain(&container.args).flatten().next().is_none() {
        let (lines, changes) = (Vec::new(), Vec::new());
        return Ok(ShellRun { lines, message: None, changes, end: End::Unknown });
    }
    let environment = simulation.environment(at)?;
    let around = environment::surroundings(simulation, at, run, on_node, budget)?;
    let mut known = shell::run_in(&environment.command, around, budget);
    // What a command has written before it has used up its budget, it has not.
    let changes = if budget.is_exceeded() { Vec::new() } else { std::mem::take(&mut known.changes) };
    known.changes = environment.on_node(changes, budget).unwrap_or_default();
    Ok(known)
}

fn scripted_lines(part: &Part) -> Vec<(Duration, String)> {
    let mut log = LogLines::default();
    part.logs.iter().for_each(|line| log.push(Duration::ZERO, line));
    log.into_lines()
}

fn scripted_end(part: &Part) -> (Duration, i32) {
    let default = match part {
        Part { oom_killed: true, .. } => KILLED,
        Part { crash_loop: true, .. } => 1,
        _ => 0,
    };
    let after = if part.crash_loop { CRASH_AFTER } else { Duration::ZERO };
    (part.after.map_or(after, |after| after.0), part.exit_code.unwrap_or(default))
}

fn is_job(pod: &Pod, role: Role) -> bool {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    match role {
        Role::Init => true,
        Role::Regular => matches!(policy, Some("OnFailure" | "Never")),
        Role::Sidecar | Role::Ephemeral => false,
    }
}

/// Whether a container whose command says nothing ends by itself.
fn ends_by_itself(pod: &Pod, container: &Container, role: Role) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    let is_of_job = || owners.clone().any(|owner| owner.kind == "Job" && owner.controller == Some(true));
    let is_interactive = container.stdin == Some(true) || container.tty == Some(true);
    let image = container.image.as_deref().unwrap_or_default();
    match role {
        Role::Init => true,
        _ if is_interactive || image::is_pause(image) || !is_job(pod, role) => false,
        _ => is_of_job() || image::is_tool(image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{budget::FULL, script::SCRIPT};
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_container_ends_by_script_command_or_image() {
        let seconds = |seconds: u64, code: i32| Some((Duration::from_secs(seconds), code));
        for (policy, container, script, run, end) in [
            ("Always", json!({"image": "nginx"}), "", 0, None),
            ("Always", json!({"image": "busybox"}), "", 0, None),
            ("Never", json!({"image": "busybox"}), "", 0, seconds(0, 0)),
            ("Never", json!({"image": "nginx"}), "", 0, None),
            ("Never", json!({"image": "perl", "command": ["perl", "-wle", "print 1"]}), "", 0, seconds(0, 0)),
            ("Never", json!({"image": "busybox", "stdin": true}), "", 0, None),
            (
                "Never",
                json!({"image": "x", "command": ["sh", "-c"], "args": ["exit 3"]}),
                "",
                0,
                seconds(0, 3),
            ),
            ("Always", json!({"image": "x", "command": ["sleep", "5"]}), "", 0, seconds(5, 0)),
            ("Always", json!({"image": "x"}), "c: {exitCode: 3, after: 5s}", 0, seconds(5, 3)),
            ("Always", json!({"image": "x"}), "c: {crashLoop: true}", 7, seconds(1, 1)),
            ("Always", json!({"image": "x"}), "c: {oomKilled: true}", 0, seconds(0, 137)),
            ("Always", json!({"image": "x"}), "c: {exitCode: 1, times: 2}", 1, seconds(0, 1)),
            ("Always", json!({"image": "x"}), "c: {exitCode: 1, times: 2}", 2, None),
            ("OnFailure", json!({"image": "x"}), "c: {exitCode: 1, times: 2}", 2, seconds(0, 0)),
            // The pod of a job.
            ("OnFailure", json!({"image": "x"}), "", 0, seconds(0, 0)),
            ("OnFailure", json!({"image": "registry.k8s.io/pause:3.10"}), "", 0, None),
        ] {
            let metadata = json!({"annotations": {SCRIPT: script}, "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": policy == "OnFailure"}]});
            let mut container = container;
            container["name"] = json!("c");
            let spec = json!({"restartPolicy": policy, "containers": [container]});
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            let course = Simulation::new(&pod, FULL).course(0, run, &Arc::default());
            assert_eq!(course.end, end, "{policy} {container:?}");
        }
    }

    /// The end and the log of the first run of the last container.
    fn outcome(spec: &serde_json::Value) -> (Option<(Duration, i32)>, Vec<String>, bool) {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"uid": "u"}, "spec": spec})).unwrap();
        let simulation = Simulation::new(&pod, FULL);
        let course = simulation.course(simulation.len() - 1, 0, &Arc::default());
        let lines = course.lines.iter().map(|(_, line)| line.clone()).collect();
        (course.end, lines, simulation.is_over_budget())
    }

    #[test]
    fn a_container_whose_variables_need_too_much_ends_with_an_error() {
        let doubled = (1..40).map(|at| {
            let half = format!("$(A{})", at - 1);
            json!({"name": format!("A{at}"), "value": format!("{half}{half}")})
        });
        let first = json!({"name": "A0", "value": "x".repeat(16)});
        let env: Vec<_> = std::iter::once(first).chain(doubled).collect();
        let with = |command: &[&str]| {
            outcome(&json!({"containers": [{"name": "c", "image": "nginx", "env": env, "command": command}]}))
        };
        let error = (Some((Duration::ZERO, budget::EXIT_CODE)), vec![budget::MESSAGE.to_owned()], true);
        assert_eq!(with(&["echo", "$(A39)"]), error);
        assert_eq!(with(&["sleep", "9"]), error);
        assert_eq!(with(&[]), (None, vec![], false), "a server without a command reads no variables");
    }

    #[test]
    fn many_init_containers_with_many_mounts_are_affordable() {
        for (containers, mounts) in [(60, 20), (100, 100)] {
            let all = |of: &dyn Fn(usize) -> serde_json::Value| (0..mounts).map(of).collect::<Vec<_>>();
            let volumes = all(&|at| json!({"name": format!("v{at}"), "emptyDir": {}}));
            let mounts = all(&|at| json!({"name": format!("v{at}"), "mountPath": format!("/d{at}")}));
            let init = |at| json!({"name": format!("i{at}"), "command": ["touch", format!("/d1/{at}")], "volumeMounts": mounts});
            let spec = json!({
                "volumes": volumes,
                "initContainers": (0..containers).map(init).collect::<Vec<_>>(),
                "containers": [{"name": "c", "volumeMounts": mounts,
                    "command": ["sh", "-c", "[ -f /d1/0 ] && [ -f /d1/59 ] && exit 7"]}]});
            assert_eq!(
                outcome(&spec),
                (Some((Duration::ZERO, 7)), vec![], false),
                "{containers} {}",
                mounts.len()
            );
        }
    }

    #[test]
    fn init_containers_that_cost_too_much_make_the_next_one_fail() {
        let mount = json!([{"name": "v", "mountPath": "/d"}]);
        let script = format!("while true; do touch {}; false; done", "/d/a ".repeat(1800));
        let init =
            |at| json!({"name": format!("i{at}"), "command": ["sh", "-c", script], "volumeMounts": mount});
        let spec = json!({
            "volumes": [{"name": "v", "emptyDir": {}}],
            "initContainers": (0..50).map(init).collect::<Vec<_>>(),
            "containers": [{"name": "c", "volumeMounts": mount, "command": ["sh", "-c", "sleep 5"]}]});
        let (end, lines, is_over_budget) = outcome(&spec);
        assert_eq!((end, is_over_budget), (Some((Duration::ZERO, budget::EXIT_CODE)), true));
        assert_eq!(lines, [budget::MESSAGE]);
    }

    #[test]
    fn a_termination_message_has_4096_bytes() {
        let message = format!("echo {} > /dev/termination-log; exit 1", "x".repeat(9000));
        let spec = json!({"containers": [{"name": "c", "command": ["sh", "-c", message]}]});
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let course = Simulation::new(&pod, FULL).course(0, 0, &Arc::default());
        assert_eq!(course.message.as_ref().unwrap().len(), MESSAGE_BYTES);
    }
}
