//! Amounts of resources: what a pod requests, and what a node has and has given away.

use api::quantity::Quantity;
use k8s_openapi::apimachinery::pkg::api::resource;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Kubernetes: a container without a request counts as this much when nodes are compared.
const DEFAULT_MILLI_CPU: i64 = 100;
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// A list of quantities as it is in objects.
pub(super) type Quantities = BTreeMap<String, resource::Quantity>;

/// Amounts of resources. CPU is in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources {
    pub(super) cpu: i64,
    pub(super) memory: i64,
    pub(super) ephemeral_storage: i64,
    /// Extended resources and huge pages.
    pub(super) others: BTreeMap<String, i64>,
}

/// CPU and memory only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuMemory {
    pub(super) cpu: i64,
    pub(super) memory: i64,
}

/// A container as far as its resources and ports go.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerFields {
    pub(super) resources: Option<RequestFields>,
    pub(super) restart_policy: Option<String>,
    pub(super) ports: Option<Vec<PortFields>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestFields {
    pub(super) requests: Option<Quantities>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PortFields {
    pub(super) host_port: Option<i32>,
    pub(super) protocol: Option<String>,
    #[serde(rename = "hostIP")]
    pub(super) host_ip: Option<String>,
}

/// The parts of a pod that decide what it requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'a> {
    pub(super) containers: &'a [ContainerFields],
    pub(super) init_containers: &'a [ContainerFields],
    pub(super) pod_level: Option<&'a Quantities>,
    pub(super) overhead: Option<&'a Quantities>,
}

impl Resources {
    pub(super) fn read(quantities: &Quantities) -> Resources {
        let mut resources = Resources::default();
        for (name, quantity) in quantities {
            let Ok(quantity) = quantity.0.parse::<Quantity>() else { continue };
            let value = quantity.value().unwrap_or(i64::MAX);
            match name.as_str() {
                "cpu" => resources.cpu = quantity.milli_value().unwrap_or(i64::MAX),
                "memory" => resources.memory = value,
                "ephemeral-storage" => resources.ephemeral_storage = value,
                "pods" => {}
                _ => drop(resources.others.insert(name.clone(), value)),
            }
        }
        resources
    }

    pub(super) fn add(&mut self, more: &Resources) {
        self.cpu = self.cpu.saturating_add(more.cpu);
        self.memory = self.memory.saturating_add(more.memory);
        self.ephemeral_storage = self.ephemeral_storage.saturating_add(more.ephemeral_storage);
        for (name, amount) in &more.others {
            let sum = self.others.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    pub(super) fn subtract(&mut self, less: &Resources) {
        self.cpu -= less.cpu;
        self.memory -= less.memory;
        self.ephemeral_storage -= less.ephemeral_storage;
        for (name, amount) in &less.others {
            *self.others.entry(name.clone()).or_default() -= amount;
        }
    }

    fn raise_to(&mut self, least: &Resources) {
        self.cpu = self.cpu.max(least.cpu);
        self.memory = self.memory.max(least.memory);
        self.ephemeral_storage = self.ephemeral_storage.max(least.ephemeral_storage);
        for (name, amount) in &least.others {
            let present = self.others.entry(name.clone()).or_default();
            *present = (*present).max(*amount);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.cpu == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.others.is_empty()
    }

    pub(super) fn other(&self, name: &str) -> i64 {
        self.others.get(name).copied().unwrap_or_default()
    }
}

impl Demand<'_> {
    /// What a pod requests of a node.
    pub(super) fn requests(self) -> Resources {
        self.total(|container| container.requests().map(Resources::read).unwrap_or_default())
    }

    /// The same with a least amount for each container: a node with many pods without requests is not empty.
    pub(super) fn requests_for_scoring(self) -> CpuMemory {
        let total = self.total(|container| {
            let mut requests = container.requests().map(Resources::read).unwrap_or_default();
            let is_missing = |name: &str| container.requests().is_none_or(|it| !it.contains_key(name));
            if is_missing("cpu") {
                requests.cpu = DEFAULT_MILLI_CPU;
            }
            if is_missing("memory") {
                requests.memory = DEFAULT_MEMORY;
            }
            requests
        });
        CpuMemory { cpu: total.cpu, memory: total.memory }
    }

    /// Init containers run before the others and one after the other, except those that always restart:
    /// these stay beside all that follow.
    fn total(self, requests_of: impl Fn(&ContainerFields) -> Resources) -> Resources {
        let (mut sum, mut sidecars, mut highest) =
            (Resources::default(), Resources::default(), Resources::default());
        self.containers.iter().for_each(|container| sum.add(&requests_of(container)));
        for container in self.init_containers {
            let requests = requests_of(container);
            if container.restart_policy.as_deref() == Some("Always") {
                sum.add(&requests);
                sidecars.add(&requests);
                highest.raise_to(&sidecars);
            } else {
                let mut with_sidecars = sidecars.clone();
                with_sidecars.add(&requests);
                highest.raise_to(&with_sidecars);
            }
        }
        sum.raise_to(&highest);
        if let Some(pod_level) = self.pod_level {
            sum.replace_by_pod_level(pod_level);
        }
        if let Some(overhead) = self.overhead {
            sum.add(&Resources::read(overhead));
        }
        sum
    }
}

impl Resources {
    /// Kubernetes: CPU, memory and huge pages may be requested for the pod as a whole.
    fn replace_by_pod_level(&mut self, quantities: &Quantities) {
        let pod_level = Resources::read(quantities);
        if quantities.contains_key("cpu") {
            self.cpu = pod_level.cpu;
        }
        if quantities.contains_key("memory") {
            self.memory = pod_level.memory;
        }
        let pages = pod_level.others.into_iter().filter(|(name, _)| name.starts_with("hugepages-"));
        self.others.extend(pages);
    }
}

impl ContainerFields {
    fn requests(&self) -> Option<&Quantities> {
        self.resources.as_ref()?.requests.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn requests(pod: Value) -> (i64, i64, CpuMemory) {
        let list = |name: &str| -> Vec<ContainerFields> {
            serde_json::from_value(pod[name].clone()).unwrap_or_default()
        };
        let quantities =
            |name: &str| -> Option<Quantities> { serde_json::from_value(pod[name].clone()).ok() };
        let (containers, init_containers) = (list("containers"), list("init"));
        let (pod_level, overhead) = (quantities("pod"), quantities("overhead"));
        let demand = Demand {
            containers: &containers,
            init_containers: &init_containers,
            pod_level: pod_level.as_ref(),
            overhead: overhead.as_ref(),
        };
        let total = demand.requests();
        (total.cpu, total.other("example.com/gpu"), demand.requests_for_scoring())
    }

    #[test]
    fn requests_follow_the_rules_of_init_containers_sidecars_overhead_and_pod_level() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount, "memory": "1"}}});
        let always = |amount: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": amount, "memory": "1"}}});
        let gpu = json!({"resources": {"requests": {"example.com/gpu": "2"}}});
        for (pod, expected) in [
            (json!({"containers": [cpu("1"), cpu("500m")]}), 1500),
            (json!({"containers": [cpu("1")], "init": [cpu("3"), cpu("2")]}), 3000),
            (json!({"containers": [cpu("1")], "init": [always("2"), cpu("3")]}), 5000),
            (json!({"containers": [cpu("1")], "init": [always("2"), cpu("100m")]}), 3000),
            (json!({"containers": [cpu("1")], "init": [cpu("100m"), always("2")]}), 3000),
            (json!({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}), 1250),
            (json!({"containers": [cpu("1")], "pod": {"cpu": "4"}, "overhead": {"cpu": "1"}}), 5000),
            (json!({"containers": [{}]}), 0),
        ] {
            assert_eq!(requests(pod.clone()).0, expected, "{pod}");
        }
        assert_eq!(requests(json!({"containers": [gpu, gpu]})).1, 4);
        let scoring = requests(json!({"containers": [{}, cpu("1")]})).2;
        assert_eq!(scoring, CpuMemory { cpu: 1100, memory: DEFAULT_MEMORY + 1 });
    }
}
