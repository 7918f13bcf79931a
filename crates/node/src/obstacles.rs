//! What a pod needs before it can start: ConfigMaps, Secrets and bound claims.

use crate::plan::{Obstacle, roles};
use k8s_openapi::api::core::v1::{Container, Pod, Volume};
use kube::ResourceExt;
use operator::Key;
use std::collections::BTreeSet;

/// Another object that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) kind: Needed,
    pub(crate) name: String,
    /// The keys that must be in it.
    pub(crate) keys: Vec<String>,
    user: User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needed {
    ConfigMap,
    Secret,
    Claim,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum User {
    Volume(String),
    Container(String),
}

/// What there is of a needed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A claim without its volume.
    Unbound,
    /// A claim that is being deleted: no further pod may use it.
    Deleted,
    /// With these keys, if they have been read.
    Object(Option<BTreeSet<String>>),
}

/// The ConfigMap with the certificate of the cluster is in every pod, and no simulated container reads it: pods
/// start without waiting for the controller that publishes it.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// What a pod needs; optional references are left out.
pub(crate) fn needs(pod: &Pod) -> Vec<Need> {
    let mut needs = Vec::new();
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        of_volume(volume, &pod.name_any(), &mut needs);
    }
    for (container, _) in roles(pod) {
        of_container(&container, &mut needs);
    }
    needs.retain(|need| need.name != ROOT_CERTIFICATE);
    needs
}

/// What is in the way, for one need.
pub(crate) fn obstacle(need: &Need, namespace: &str, found: &Found) -> Option<Obstacle> {
    let (name, kind) = (&need.name, need.kind);
    let problem = match found {
        Found::Nothing => match kind {
            // Kubernetes: with Go's quotes.
            Needed::ConfigMap => format!("configmap \"{name}\" not found"),
            Needed::Secret => format!("secret \"{name}\" not found"),
            Needed::Claim => format!("persistentvolumeclaim \"{name}\" not found"),
        },
        Found::Unbound => "PVC is not bound".to_owned(),
        Found::Deleted => "PVC is being deleted".to_owned(),
        Found::Object(None) => return None,
        Found::Object(Some(keys)) => {
            let missing = need.keys.iter().find(|key| !keys.contains(*key))?;
            match (&need.user, kind) {
                (User::Container(_), Needed::Secret) => {
                    format!("couldn't find key {missing} in Secret {namespace}/{name}")
                }
                (User::Container(_), _) => {
                    format!("couldn't find key {missing} in ConfigMap {namespace}/{name}")
                }
                (User::Volume(_), Needed::Secret) => format!("references non-existent secret key: {missing}"),
                (User::Volume(_), _) => format!("configmap references non-existent config key: {missing}"),
            }
        }
    };
    Some(match &need.user {
        User::Container(container) => {
            Obstacle::Environment { container: container.clone(), message: problem }
        }
        User::Volume(volume) if kind == Needed::Claim => Obstacle::Volume {
            message: format!(
                "Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], failed to \
                 process volumes=[{volume}]: error processing PVC {namespace}/{name}: {problem}"
            ),
        },
        User::Volume(volume) => Obstacle::Volume {
            message: format!("MountVolume.SetUp failed for volume \"{volume}\" : {problem}"),
        },
    })
}

impl Need {
    pub(crate) fn key(&self, namespace: &str) -> Key {
        Key::new(Some(namespace), &self.name)
    }
}

fn of_volume(volume: &Volume, pod: &str, needs: &mut Vec<Need>) {
    let mut add = |kind: Needed, name: Option<&str>, optional: Option<bool>, keys: Vec<String>| {
        if let (Some(name), false) = (name, optional == Some(true)) {
            let user = User::Volume(volume.name.clone());
            needs.push(Need { kind, name: name.to_owned(), keys, user });
        }
    };
    if let Some(map) = &volume.config_map {
        let keys = map.items.iter().flatten().map(|item| item.key.clone()).collect();
        add(Needed::ConfigMap, Some(map.name.as_str()), map.optional, keys);
    }
    if let Some(secret) = &volume.secret {
        let keys = secret.items.iter().flatten().map(|item| item.key.clone()).collect();
        add(Needed::Secret, secret.secret_name.as_deref(), secret.optional, keys);
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        add(Needed::Claim, Some(claim.claim_name.as_str()), None, Vec::new());
    }
    if volume.ephemeral.is_some() {
        // Kubernetes: the name of the claim that is made for the volume.
        add(Needed::Claim, Some(&format!("{pod}-{}", volume.name)), None, Vec::new());
    }
    for source in volume.projected.iter().flat_map(|it| it.sources.iter().flatten()) {
        if let Some(map) = &source.config_map {
            let keys = map.items.iter().flatten().map(|item| item.key.clone()).collect();
            add(Needed::ConfigMap, Some(map.name.as_str()), map.optional, keys);
        }
        if let Some(secret) = &source.secret {
            let keys = secret.items.iter().flatten().map(|item| item.key.clone()).collect();
            add(Needed::Secret, Some(secret.name.as_str()), secret.optional, keys);
        }
    }
}

fn of_container(container: &Container, needs: &mut Vec<Need>) {
    let mut add = |kind: Needed, name: &str, optional: Option<bool>, keys: Vec<String>| {
        if optional != Some(true) {
            let user = User::Container(container.name.clone());
            needs.push(Need { kind, name: name.to_owned(), keys, user });
        }
    };
    for source in container.env_from.iter().flatten() {
        if let Some(map) = &source.config_map_ref {
            add(Needed::ConfigMap, &map.name, map.optional, Vec::new());
        }
        if let Some(secret) = &source.secret_ref {
            add(Needed::Secret, &secret.name, secret.optional, Vec::new());
        }
    }
    for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
        if let Some(map) = &source.config_map_key_ref {
            add(Needed::ConfigMap, &map.name, map.optional, vec![map.key.clone()]);
        }
        if let Some(secret) = &source.secret_key_ref {
            add(Needed::Secret, &secret.name, secret.optional, vec![secret.key.clone()]);
        }
    }
}
