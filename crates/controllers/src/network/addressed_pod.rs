//! The pods of a service: which they are, and their addresses and ports.

use crate::pod;
use k8s_openapi::{
    api::core::v1::{ContainerPort, ObjectReference, Pod, Service, ServicePort},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;
use operator::{
    Key,
    cache::{Item, Undecodable, View},
};
use std::{net::IpAddr, sync::Arc};

/// The index of pods by each of their labels, and of services by one label of their selector.
const LABEL: &str = "label of endpoints";

/// A service's `spec.clusterIP` without an address.
const NONE: &str = "None";

/// The pods that a service selects, by name.
pub(super) fn pods_of(service: &Service, pods: &View<Pod>) -> Result<Vec<Arc<Pod>>, Undecodable> {
    pods.index_items(LABEL, |item: &Item| {
        let namespace = item.key().namespace().unwrap_or_default();
        item.labels().iter().map(|(name, value)| label(namespace, name, value)).collect()
    });
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let Some((name, value)) = selector.and_then(|selector| selector.first_key_value()) else {
        // An empty selector selects all pods of the namespace.
        return pods.in_namespace(namespace);
    };
    let mut found = pods.indexed(LABEL, &label(namespace, name, value))?;
    found.retain(|pod| {
        selector.into_iter().flatten().all(|(name, value)| pod.labels().get(name) == Some(value))
    });
    Ok(found)
}

/// The value of a service in the index that [`services_of`] reads.
pub(super) fn selector_label(service: &Service) -> Vec<String> {
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    match service.spec.as_ref().and_then(|spec| spec.selector.as_ref()) {
        Some(selector) => match selector.first_key_value() {
            Some((name, value)) => vec![label(namespace, name, value)],
            None => vec![label(namespace, "", "")],
        },
        None => Vec::new(),
    }
}

/// The name of the index for [`selector_label`].
pub(super) const SELECTOR: &str = LABEL;

/// The keys of the services that select a pod.
pub(super) fn services_of(services: &View<Service>, pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let labels = pod.labels().iter().map(|(name, value)| label(namespace, name, value));
    let candidates = labels.chain([label(namespace, "", "")]);
    let candidates = candidates.flat_map(|label| services.indexed(SELECTOR, &label).unwrap_or_default());
    let selects = |service: &Arc<Service>| {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.into_iter().flatten().all(|(name, value)| pod.labels().get(name) == Some(value))
    };
    candidates.filter(selects).map(|service| Key::of(&*service)).collect()
}

fn label(namespace: &str, name: &str, value: &str) -> String {
    format!("{namespace}/{name}={value}")
}

/// Whether this loop makes endpoints for the service: it has a selector, and is not a mere alias.
pub(super) fn has_endpoints(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| spec.selector.is_some() && spec.type_.as_deref() != Some("ExternalName"))
}

pub(super) fn publishes_not_ready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or_default()
}

/// Whether it has no address of its own: its clients reach the pods directly.
pub(super) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    address.is_empty() || address == NONE
}

/// Whether it is explicitly headless; such a service may have no ports.
pub(super) fn may_lack_ports(service: &Service) -> bool {
    service.spec.as_ref().is_some_and(|spec| spec.cluster_ip.as_deref() == Some(NONE))
}

/// Whether the pod has addresses and has not ended.
pub(super) fn has_address(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let has_ip = status.and_then(|status| status.pod_ip.as_deref()).is_some_and(|ip| !ip.is_empty());
    let has_ips = status.and_then(|status| status.pod_ips.as_ref()).is_some_and(|ips| !ips.is_empty());
    (has_ip || has_ips) && !pod::is_finished(pod)
}

/// Its addresses, in the order of its status.
pub(super) fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    let ips = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
    ips.filter_map(|ip| ip.ip.parse().ok())
}

/// The name of the pod within the service, if it has one there.
pub(super) fn hostname<'a>(pod: &'a Pod, service: &Service) -> Option<&'a str> {
    let spec = pod.spec.as_ref()?;
    let is_subdomain = spec.subdomain.as_deref() == service.metadata.name.as_deref();
    spec.hostname.as_deref().filter(|name| !name.is_empty() && is_subdomain)
}

pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.namespace(),
        name: pod.metadata.name.clone(),
        uid: pod.uid(),
        ..ObjectReference::default()
    }
}

pub(super) fn ports(service: &Service) -> &[ServicePort] {
    service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default()
}

/// The number of the pod's port that a port of the service leads to.
pub(super) fn target_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match port.target_port.as_ref()? {
        IntOrString::Int(number) => return Some(*number),
        IntOrString::String(name) => name,
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let mut ports = spec.containers.iter().chain(sidecars).flat_map(|it| it.ports.iter().flatten());
    let protocol = |protocol: &Option<String>| protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    let is_target = |it: &&ContainerPort| {
        it.name.as_ref() == Some(name) && protocol(&it.protocol) == protocol(&port.protocol)
    };
    ports.find(is_target).map(|port| port.container_port)
}
