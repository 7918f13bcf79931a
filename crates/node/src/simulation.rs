//! What the containers of a pod do: computed from the pod alone, once, within a [`Budget`].
//!
//! Each container has its share of the budget for its environment, for a run, for a hook and for a probe, so that what it does
//! never depends on which others are looked at. A container that needs more ends with an error.

use crate::{
    budget::{Budget, OverBudget},
    environment::{Environment, Left, Volumes},
    exec,
    plan::{Course, Role, course, roles},
    script::{Part, SCRIPT, Script},
    shell::{self, End, Texts},
};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod, Probe};
use kube::ResourceExt;
use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// A pod with more containers, mounts, variables and volumes is not simulated on a thread that serves sockets.
const MANY: usize = 500;
/// So is one with a longer script, in bytes.
const LONG_SCRIPT: usize = 16 << 10;

/// A pod that is simulated.
#[derive(Debug)]
pub(crate) struct Simulation<'a> {
    pod: &'a Pod,
    script: Result<Script, String>,
    containers: Vec<Simulated<'a>>,
    volumes: Volumes<'a>,
    /// The files that each container and those before it leave for the next one, as far as somebody has asked.
    left: RefCell<Vec<Result<Rc<Left>, OverBudget>>>,
    /// What the containers may cost together.
    units: usize,
    is_over_budget: Cell<bool>,
}

/// What is known of a container.
#[derive(Debug)]
struct Simulated<'a> {
    container: Cow<'a, Container>,
    role: Role,
    environment: OnceCell<Result<Environment, OverBudget>>,
    last: RefCell<Option<LastRun>>,
    post_start: OnceCell<Duration>,
    pre_stop: OnceCell<Duration>,
    failing_probes: OnceCell<FailingProbes>,
}

/// The probes of a container whose commands fail each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailingProbes {
    pub(crate) startup: bool,
    pub(crate) readiness: bool,
    pub(crate) liveness: bool,
}

/// The run of a container that was asked for last.
#[derive(Debug)]
struct LastRun {
    number: i32,
    on_node: Arc<Texts>,
    course: Rc<Course>,
}

/// A command that Kubernetes runs beside that of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    PostStart,
    PreStop,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(pod: &'a Pod, units: usize) -> Simulation<'a> {
        let simulated = |(container, role)| Simulated {
            container,
            role,
            environment: OnceCell::new(),
            last: RefCell::default(),
            post_start: OnceCell::new(),
            pre_stop: OnceCell::new(),
            failing_probes: OnceCell::new(),
        };
        Simulation {
            pod,
            script: Script::of(pod),
            containers: roles(pod).into_iter().map(simulated).collect(),
            volumes: Volumes::of(pod),
            left: RefCell::default(),
            units,
            is_over_budget: Cell::new(false),
        }
    }

    pub(crate) fn pod(&self) -> &'a Pod {
        self.pod
    }

    /// How many containers there are, in the order in which they start.
    pub(crate) fn len(&self) -> usize {
        self.containers.len()
    }

    pub(crate) fn container(&self, at: usize) -> &Container {
        &self.containers[at].container
    }

    pub(crate) fn role(&self, at: usize) -> Role {
        self.containers[at].role
    }

    /// What the script says of a container.
    pub(crate) fn part(&self, container: &str) -> &Part {
        self.script.as_ref().map_or_else(|_| Part::well_behaved(), |script| script.part(container))
    }

    /// What is wrong with the script.
    pub(crate) fn script_problem(&self) -> Option<&str> {
        self.script.as_ref().err().map(String::as_str)
    }

    /// Whether something has ended because of the budget.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.is_over_budget.get()
    }

    /// What run number `run` of a container does on a node that has had these files when it started.
    pub(crate) fn course(&self, at: usize, run: i32, on_node: &Arc<Texts>) -> Rc<Course> {
        let simulated = &self.containers[at];
        if let Some(last) = &*simulated.last.borrow()
            && last.number == run
            && (Arc::ptr_eq(&last.on_node, on_node) || last.on_node == *on_node)
        {
            return Rc::clone(&last.course);
        }
        let compute = |budget: &Budget| course(self, at, run, on_node, budget);
        let course = Rc::new(self.within_budget(self.share(), compute));
        let last = LastRun { number: run, on_node: Arc::clone(on_node), course: Rc::clone(&course) };
        *simulated.last.borrow_mut() = Some(last);
        course
    }

    pub(crate) fn environment(&self, at: usize) -> Result<&Environment, OverBudget> {
        let simulated = &self.containers[at];
        let environment = simulated.environment.get_or_init(|| {
            self.within_budget(self.share(), |budget| {
                Environment::of(self.pod, &simulated.container, &self.volumes, budget)
            })
        });
        environment.as_ref().map_err(|over| *over)
    }

    /// The files that the init containers before this container leave on a node without files.
    pub(crate) fn left_by_inits(&self, at: usize) -> Result<Rc<Left>, OverBudget> {
        let mut all = self.left.borrow_mut();
        if all.is_empty() {
            all.push(Ok(Rc::new(Left::by_none())));
        }
        while let (Some(last), next) = (all.last().cloned(), all.len() - 1)
            && next < at
        {
            let more = last.and_then(|last| {
                let left = self.within_budget(self.share(), |budget| last.with(self, next, budget))?;
                Ok(left.map_or(last, Rc::new))
            });
            all.push(more);
        }
        all[at].clone()
    }

    /// How long a hook of a container takes: its sleep, or that of its command.
    pub(crate) fn hook_time(&self, at: usize, hook: Hook) -> Duration {
        let simulated = &self.containers[at];
        let lifecycle = simulated.container.lifecycle.as_ref();
        let (known, handler) = match hook {
            Hook::PostStart => (&simulated.post_start, lifecycle.and_then(|it| it.post_start.as_ref())),
            Hook::PreStop => (&simulated.pre_stop, lifecycle.and_then(|it| it.pre_stop.as_ref())),
        };
        let Some(handler) = handler else { return Duration::ZERO };
        *known.get_or_init(|| self.within_budget(self.share(), |budget| time_of(handler, budget)))
    }

    /// The probes of a container that can only fail. Those whose command depends on anything are not among them.
    pub(crate) fn failing_probes(&self, at: usize) -> FailingProbes {
        let simulated = &self.containers[at];
        let container = &simulated.container;
        let fails = |probe: &Option<Probe>| {
            let exec = probe.as_ref().and_then(|probe| probe.exec.as_ref());
            exec.and_then(|exec| exec.command.as_deref()).is_some_and(|command| {
                let part = self.part(&container.name);
                self.within_budget(self.share(), |budget| exec::always_fails(part, command, budget))
            })
        };
        *simulated.failing_probes.get_or_init(|| FailingProbes {
            startup: fails(&container.startup_probe),
            readiness: fails(&container.readiness_probe),
            liveness: fails(&container.liveness_probe),
        })
    }

    /// Does something beside the runs of the containers, as the commands of users are.
    pub(crate) fn beside<T>(&self, work: impl FnOnce(&Budget) -> T) -> T {
        self.within_budget(self.units, work)
    }

    fn share(&self) -> usize {
        self.units / self.containers.len().max(1)
    }

    fn within_budget<T>(&self, units: usize, work: impl FnOnce(&Budget) -> T) -> T {
        let budget = Budget::new(units);
        let done = work(&budget);
        self.is_over_budget.set(self.is_over_budget.get() || budget.is_exceeded());
        done
    }
}

/// Whether even the preparations for the simulation of a pod take long.
pub(crate) fn is_large(pod: &Pod) -> bool {
    let length = |list: Option<usize>| list.unwrap_or_default();
    let of_container = |it: &Container| {
        let lists = [length(it.env.as_ref().map(Vec::len)), length(it.volume_mounts.as_ref().map(Vec::len))];
        let words = it.command.iter().chain(&it.args).flatten().count();
        1 + lists.iter().sum::<usize>() + words
    };
    let Some(spec) = &pod.spec else { return false };
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let volumes = length(spec.volumes.as_ref().map(Vec::len));
    let ephemeral = length(spec.ephemeral_containers.as_ref().map(Vec::len));
    let entries = containers.map(of_container).sum::<usize>() + volumes + ephemeral;
    entries > MANY || pod.annotations().get(SCRIPT).is_some_and(|script| script.len() > LONG_SCRIPT)
}

fn time_of(hook: &LifecycleHandler, budget: &Budget) -> Duration {
    if let Some(sleep) = &hook.sleep {
        return Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or_default());
    }
    let command = hook.exec.as_ref().and_then(|exec| exec.command.as_deref()).unwrap_or_default();
    match shell::run(command, budget).end {
        End::At(after, _) => after,
        End::Never => Duration::MAX,
        End::Unknown => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A budget that is enough for all containers of a pod: a power of two.
    fn enough_for(spec: &Value) -> usize {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"uid": "u"}, "spec": spec})).unwrap();
        let is_enough = |units: &usize| {
            let simulation = Simulation::new(&pod, *units);
            for at in 0..simulation.len() {
                simulation.course(at, 1, &Arc::default());
                simulation.hook_time(at, Hook::PreStop);
            }
            !simulation.is_over_budget()
        };
        (10..30).map(|power| 1 << power).find(is_enough).unwrap()
    }

    #[test]
    fn what_a_pod_costs_grows_with_its_lists_and_not_with_their_squares() {
        type List<'a> = &'a dyn Fn(&dyn Fn(usize) -> Value) -> Value;
        type Spec<'a> = &'a dyn Fn(List<'_>) -> Value;
        let mount = json!([{"name": "v0", "mountPath": "/d"}]);
        let container = |name: &str, command: &str| json!({"name": name, "command": ["sh", "-c", command], "volumeMounts": mount});
        let kinds: [(&str, Spec<'_>); 7] = [
            ("init containers", &|list| {
                json!({"volumes": [{"name": "v0", "emptyDir": {}}],
                    "initContainers": list(&|at| container(&format!("i{at}"), "echo 1 > /d/a")),
                    "containers": [container("c", "[ -f /d/a ]")]})
            }),
            ("containers", &|list| {
                json!({"volumes": [{"name": "v0", "emptyDir": {}}],
                    "containers": list(&|at| container(&format!("c{at}"), "echo 1 > /d/a"))})
            }),
            ("mounts", &|list| {
                let mounts = list(&|at| json!({"name": format!("v{at}"), "mountPath": format!("/d{at}")}));
                json!({"volumes": list(&|at| json!({"name": format!("v{at}"), "emptyDir": {}})),
                    "initContainers": [{"name": "i", "command": ["touch", "/d1/a"], "volumeMounts": mounts}],
                    "containers": [{"name": "c", "command": ["true"], "volumeMounts": mounts}]})
            }),
            ("variables", &|list| {
                let env = list(&|at| json!({"name": format!("A{at}"), "value": "1"}));
                json!({"containers": [{"name": "c", "command": ["sh", "-c", "echo $(true)$(true)"], "env": env}]})
            }),
            ("captures", &|list| {
                let captures = list(&|_| json!("$(true)"));
                let words: Vec<_> = captures.as_array().unwrap().iter().filter_map(Value::as_str).collect();
                json!({"containers": [{"name": "c", "command": ["sh", "-c", format!("echo {}", words.concat())]}]})
            }),
            ("files", &|list| {
                let files = list(&|at| json!(format!("/tmp/{}", at % 90)));
                let words: Vec<_> = files.as_array().unwrap().iter().filter_map(Value::as_str).collect();
                json!({"containers": [{"name": "c", "command": ["sh", "-c", format!("touch {}", words.join(" "))]}]})
            }),
            ("hooks", &|list| {
                let hook = json!({"preStop": {"exec": {"command": ["sleep", "1"]}}});
                json!({"containers": list(&|at| json!({"name": format!("c{at}"), "lifecycle": hook}))})
            }),
        ];
        for (name, spec) in kinds {
            let of = |count: usize| {
                enough_for(&spec(&|entry: &dyn Fn(usize) -> Value| (0..count).map(entry).collect()))
            };
            let (few, many) = (of(40), of(320));
            // Eight times as much, and a power of two.
            assert!(many <= 16 * few, "{name}: {few} for 40, {many} for 320");
        }
    }
}
