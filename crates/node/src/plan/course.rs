//! What a container does in one run: by its script, by its command, by its image.

use super::Role;
use crate::{
    environment, image,
    script::Part,
    shell::{self, Change, End, Texts},
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

/// What run number `run` of a container does; its first one is 0.
pub(crate) fn course(pod: &Pod, container: &Container, role: Role, part: &Part, run: i32) -> Course {
    course_with(pod, container, role, part, run, &Texts::new())
}

/// The same on a node that has had these files when the run started.
pub(crate) fn course_with(
    pod: &Pod,
    container: &Container,
    role: Role,
    part: &Part,
    run: i32,
    on_node: &Texts,
) -> Course {
    let words = environment::command(pod, container);
    let known = shell::run_in(&words, &environment::surroundings(pod, container, role, run, on_node));
    let by_command = match known.end {
        _ if words.is_empty() => ends_by_itself(pod, container, role).then_some((Duration::ZERO, 0)),
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
    let scripted = part.logs.iter().map(|line| (Duration::ZERO, line.clone()));
    let lines = if part.logs.is_empty() { known.lines } else { scripted.collect() };
    let changes = environment::on_node(pod, container, known.changes);
    Course { end, is_oom_killed, message: part.message.clone().or(known.message), lines, changes }
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
    use crate::script::Script;
    use serde_json::json;

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
            let metadata = json!({"ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": policy == "OnFailure"}]});
            let spec = json!({"restartPolicy": policy, "containers": []});
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            let mut container = container;
            container["name"] = json!("c");
            let container: Container = serde_json::from_value(container).unwrap();
            let script: Script = script.parse().unwrap();
            let course = course(&pod, &container, Role::Regular, script.part("c"), run);
            assert_eq!(course.end, end, "{policy} {container:?}");
        }
    }
}
