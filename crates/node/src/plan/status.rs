//! The status of a pod, from the states of its containers.

use super::{
    Frame, Progress, conditions, is_finished, phase,
    slot::{Role, Slot},
    stop::{DEADLINE_EXCEEDED, DEADLINE_MESSAGE, Stop, Why},
    whole_second,
};
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerStatus, ContainerUser, HostIP, LinuxContainerUser, PodIP, PodStatus,
        VolumeMountStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

pub(super) fn status(
    slots: &[Slot<'_>],
    frame: &Frame<'_>,
    old: PodStatus,
    progress: Progress,
    stop: Option<&Stop>,
) -> PodStatus {
    let is_over = progress == Progress::Over;
    let mut status = PodStatus { observed_generation: frame.pod.metadata.generation, ..old.clone() };
    let is_too_late = stop.is_some_and(|stop| stop.why == Why::Deadline);
    let phase = match phase::phase(slots, frame, stop.is_some() && is_over) {
        _ if is_finished(&old) => old.phase.clone().unwrap_or_default(),
        _ if is_over && is_too_late => phase::FAILED.to_owned(),
        // Kubernetes: a pod is finished only when none of its containers can run any more.
        phase::SUCCEEDED | phase::FAILED if !is_over => {
            old.phase.clone().unwrap_or_else(|| phase::PENDING.to_owned())
        }
        phase @ (phase::SUCCEEDED | phase::FAILED) => phase.to_owned(),
        _ if is_over => phase::FAILED.to_owned(),
        phase => phase.to_owned(),
    };
    if is_over && is_too_late && !is_finished(&old) {
        status.reason = Some(DEADLINE_EXCEEDED.to_owned());
        status.message = Some(DEADLINE_MESSAGE.to_owned());
    }
    status.conditions = Some(conditions::conditions(slots, frame, &old, &phase, progress));
    status.phase = Some(phase);
    status.start_time = old.start_time.or_else(|| Some(Time(whole_second(frame.now))));
    addresses(&mut status, frame, progress == Progress::Running || slots.iter().any(Slot::has_run));
    let of = |roles: &[Role]| -> Option<Vec<ContainerStatus>> {
        let list: Vec<_> = slots
            .iter()
            .filter(|slot| roles.contains(&slot.role))
            .map(|it| container_status(it, frame))
            .collect();
        (!list.is_empty()).then_some(list)
    };
    status.init_container_statuses = of(&[Role::Init, Role::Sidecar]);
    status.container_statuses = of(&[Role::Regular]).map(|mut list| {
        // Kubernetes: regular containers are sorted by name, init containers are in the order of the spec.
        list.sort_by(|first, second| first.name.cmp(&second.name));
        list
    });
    status.ephemeral_container_statuses = of(&[Role::Ephemeral]);
    status
}

fn addresses(status: &mut PodStatus, frame: &Frame<'_>, has_sandbox: bool) {
    let host = frame.place.host_ip.clone();
    status.host_ips = Some(vec![HostIP { ip: host.clone() }]);
    let is_on_host = frame.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    let own = if is_on_host { &host } else { &frame.place.pod_ip };
    // A pod that ends before its sandbox was made never gets an address.
    if status.pod_ip.is_none() && (is_on_host || has_sandbox) && !own.is_empty() {
        status.pod_ip = Some(own.clone());
        status.pod_ips = Some(vec![PodIP { ip: own.clone() }]);
    }
    status.host_ip = Some(host);
}

fn container_status(slot: &Slot<'_>, frame: &Frame<'_>) -> ContainerStatus {
    let container = &slot.container;
    let mut status = slot.status.clone();
    status.volume_mounts = volume_mounts(container);
    if !slot.has_run() {
        return status;
    }
    // Kubernetes: a resize is in the status when it has been carried out; here, at once if it fits.
    if frame.pending_resize.is_none() || status.resources.is_none() {
        status.resources = Some(container.resources.clone().unwrap_or_default());
        status.allocated_resources = container.resources.as_ref().and_then(|it| it.requests.clone());
    }
    status.user.get_or_insert_with(|| user(container));
    status
}

fn volume_mounts(container: &Container) -> Option<Vec<VolumeMountStatus>> {
    let mounts = container.volume_mounts.as_ref().filter(|mounts| !mounts.is_empty())?;
    let mount = |mount: &k8s_openapi::api::core::v1::VolumeMount| VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only,
        recursive_read_only: (mount.read_only == Some(true)).then(|| "Disabled".to_owned()),
        volume_status: None,
    };
    Some(mounts.iter().map(mount).collect())
}

fn user(container: &Container) -> ContainerUser {
    let context = container.security_context.as_ref();
    let uid = context.and_then(|it| it.run_as_user).unwrap_or_default();
    let gid = context.and_then(|it| it.run_as_group).unwrap_or_default();
    let linux = LinuxContainerUser { uid, gid, supplemental_groups: Some(vec![gid]) };
    ContainerUser { linux: Some(linux) }
}
