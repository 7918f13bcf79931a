//! Objects related to a node: the pods bound to it, and the objects that these use.

use crate::{live::Fold, stored::Stored};
use api::object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A kind of object that a pod can use, in its own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Usable {
    Secret,
    ConfigMap,
    Claim,
    ResourceClaim,
    ServiceAccount,
    /// The pod itself.
    Pod,
}

/// Namespace and name.
pub(super) type NamespacedName = (String, String);

/// The pods of each node.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// By node and by the pod's key.
    by_node: HashMap<String, BTreeMap<String, PodUses>>,
    node_of: HashMap<String, String>,
}

#[derive(Debug)]
struct PodUses {
    namespace: String,
    uses: BTreeSet<(Usable, String)>,
}

/// The claim of each volume, and the secrets needed to mount it.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    claims: HashMap<String, NamespacedName>,
    secrets: HashMap<String, BTreeSet<NamespacedName>>,
}

/// Objects that name a node.
#[derive(Debug, Default)]
pub(super) struct OfNodes(HashMap<String, String>);

impl Pods {
    /// Whether a pod on the node uses the object.
    pub(super) fn reach(&self, node: &str, sort: Usable, namespace: &str, name: &str) -> bool {
        let wanted = (sort, name.to_owned());
        let mut pods = self.by_node.get(node).into_iter().flat_map(BTreeMap::values);
        pods.any(|pod| pod.namespace == namespace && pod.uses.contains(&wanted))
    }
}

impl Volumes {
    pub(super) fn claim_of(&self, volume: &str) -> Option<NamespacedName> {
        self.claims.get(volume).cloned()
    }

    /// The claims whose volumes need this secret.
    pub(super) fn claims_behind(&self, secret: &NamespacedName) -> Vec<NamespacedName> {
        let needing = self.secrets.iter().filter(|(_, secrets)| secrets.contains(secret));
        needing.filter_map(|(volume, _)| self.claim_of(volume)).collect()
    }
}

impl OfNodes {
    pub(super) fn node_of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl Fold for Pods {
    fn clear(&mut self) {
        *self = Pods::default();
    }

    fn put(&mut self, key: &str, object: Stored) {
        self.remove(key);
        let Ok(pod) = object.value() else { return };
        let Some(node) = text(&pod["spec"]["nodeName"]) else { return };
        self.node_of.insert(key.to_owned(), node.to_owned());
        let uses = if is_mirror(&pod) { BTreeSet::new() } else { uses(&pod) };
        let itself = (Usable::Pod, object::name(&pod).to_owned());
        let uses = uses.into_iter().chain([itself]).collect();
        let pod = PodUses { namespace: object::namespace(&pod).to_owned(), uses };
        self.by_node.entry(node.to_owned()).or_default().insert(key.to_owned(), pod);
    }

    fn remove(&mut self, key: &str) {
        let Some(node) = self.node_of.remove(key) else { return };
        let Some(pods) = self.by_node.get_mut(&node) else { return };
        pods.remove(key);
        if pods.is_empty() {
            self.by_node.remove(&node);
        }
    }
}

impl Fold for Volumes {
    fn clear(&mut self) {
        *self = Volumes::default();
    }

    fn put(&mut self, key: &str, object: Stored) {
        self.remove(key);
        let Ok(volume) = object.value() else { return };
        let claim = &volume["spec"]["claimRef"];
        let (Some(namespace), Some(name)) = (text(&claim["namespace"]), text(&claim["name"])) else { return };
        let secrets = volume_secrets(&volume["spec"], namespace);
        if !secrets.is_empty() {
            self.secrets.insert(last(key), secrets);
        }
        self.claims.insert(last(key), (namespace.to_owned(), name.to_owned()));
    }

    fn remove(&mut self, key: &str) {
        self.claims.remove(&last(key));
        self.secrets.remove(&last(key));
    }
}

impl Fold for OfNodes {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn put(&mut self, key: &str, object: Stored) {
        self.remove(key);
        let Ok(object) = object.value() else { return };
        if let Some(node) = text(&object["spec"]["nodeName"]) {
            self.0.insert(last(key), node.to_owned());
        }
    }

    fn remove(&mut self, key: &str) {
        self.0.remove(&last(key));
    }
}

/// A kubelet can create mirror pods, so these give it no access.
fn is_mirror(pod: &Value) -> bool {
    object::annotation(pod, "kubernetes.io/config.mirror").is_some()
}

fn uses(pod: &Value) -> BTreeSet<(Usable, String)> {
    let spec = &pod["spec"];
    let mut uses = BTreeSet::new();
    let mut add = |sort: Usable, name: &Value| {
        if let Some(name) = text(name) {
            uses.insert((sort, name.to_owned()));
        }
    };
    add(Usable::ServiceAccount, &spec["serviceAccountName"]);
    items(&spec["imagePullSecrets"]).for_each(|secret| add(Usable::Secret, &secret["name"]));
    let containers = ["initContainers", "containers", "ephemeralContainers"];
    for container in containers.iter().flat_map(|sort| items(&spec[sort])) {
        for from in items(&container["envFrom"]) {
            add(Usable::Secret, &from["secretRef"]["name"]);
            add(Usable::ConfigMap, &from["configMapRef"]["name"]);
        }
        for from in items(&container["env"]).map(|variable| &variable["valueFrom"]) {
            add(Usable::Secret, &from["secretKeyRef"]["name"]);
            add(Usable::ConfigMap, &from["configMapKeyRef"]["name"]);
        }
    }
    for volume in items(&spec["volumes"]) {
        volume_uses(pod, volume, &mut add);
    }
    for claim in items(&spec["resourceClaims"]) {
        add(Usable::ResourceClaim, &claim["resourceClaimName"]);
        let mut made = items(&pod["status"]["resourceClaimStatuses"]);
        if let Some(made) = made.find(|made| made["name"] == claim["name"]) {
            add(Usable::ResourceClaim, &made["resourceClaimName"]);
        }
    }
    add(Usable::ResourceClaim, &pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]);
    uses
}

fn volume_uses(pod: &Value, volume: &Value, add: &mut impl FnMut(Usable, &Value)) {
    add(Usable::ConfigMap, &volume["configMap"]["name"]);
    add(Usable::Secret, &volume["secret"]["secretName"]);
    add(Usable::Secret, &volume["azureFile"]["secretName"]);
    add(Usable::Secret, &volume["csi"]["nodePublishSecretRef"]["name"]);
    for sort in WITH_SECRET {
        add(Usable::Secret, &volume[sort]["secretRef"]["name"]);
    }
    for source in items(&volume["projected"]["sources"]) {
        add(Usable::Secret, &source["secret"]["name"]);
        add(Usable::ConfigMap, &source["configMap"]["name"]);
    }
    add(Usable::Claim, &volume["persistentVolumeClaim"]["claimName"]);
    if !volume["ephemeral"].is_null() {
        let volume = volume["name"].as_str().unwrap_or_default();
        add(Usable::Claim, &format!("{}-{volume}", object::name(pod)).into());
    }
}

/// Volume types with a `secretRef`.
const WITH_SECRET: [&str; 7] = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];

/// Secrets that a node needs; not those of controllers.
fn volume_secrets(spec: &Value, claim_namespace: &str) -> BTreeSet<NamespacedName> {
    let mut secrets = BTreeSet::new();
    let mut add = |namespace: &Value, name: &Value| {
        if let Some(name) = text(name) {
            secrets.insert((text(namespace).unwrap_or(claim_namespace).to_owned(), name.to_owned()));
        }
    };
    add(&spec["azureFile"]["secretNamespace"], &spec["azureFile"]["secretName"]);
    for sort in WITH_SECRET {
        let secret = &spec[sort]["secretRef"];
        add(&secret["namespace"], &secret["name"]);
    }
    for sort in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        let secret = &spec["csi"][sort];
        add(&secret["namespace"], &secret["name"]);
    }
    secrets
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The name at the end of a key.
fn last(key: &str) -> String {
    key.rsplit('/').next().unwrap_or_default().to_owned()
}
