//! ServiceAccount: every pod runs as an account of its namespace, with a token mounted where clients look.

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::{go, name::NameRule, object};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DEFAULT: &str = "default";
// Kubernetes: the path where clients in a pod look for the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
// Kubernetes: an hour and seven seconds, which marks a token that no user requested.
const TOKEN_SECONDS: u32 = 3607;
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) async fn fill(review: &mut Review<'_>) -> Result<(), Refusal> {
    if review.operation != Operation::Create || !review.is_on("", "pods") {
        return Ok(());
    }
    if is_mirror(&review.object) {
        return check_mirror(review);
    }
    if text(&review.object["spec"]["serviceAccountName"]).is_empty() {
        review.object["spec"]["serviceAccountName"] = DEFAULT.into();
        review.object["spec"]["serviceAccount"] = DEFAULT.into();
    }
    let account = account(review).await?;
    let spec = &mut review.object["spec"];
    let wants = |it: &Value| it["automountServiceAccountToken"].as_bool();
    if wants(spec).or_else(|| wants(&account)).unwrap_or(true) {
        mount(spec, &review.call.inner.world.name_suffix());
    }
    let secrets = account["imagePullSecrets"].as_array().filter(|secrets| !secrets.is_empty());
    if let (Some(secrets), true) = (secrets, is_empty(&spec["imagePullSecrets"])) {
        spec["imagePullSecrets"] = secrets.iter().map(|it| json!({"name": it["name"]})).collect();
    }
    Ok(())
}

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let is_debugging = review.is_on_sub("", "pods", "ephemeralcontainers");
    match review.operation {
        Operation::Create if review.is_on("", "pods") => {}
        Operation::Update if is_debugging => {}
        _ => return Ok(()),
    }
    if !is_debugging && is_mirror(&review.object) {
        return check_mirror(review);
    }
    if text(&review.object["spec"]["serviceAccountName"]).is_empty() {
        let place = format!("{}/{}", review.namespace(), review.name());
        return Err(review.forbidden(format!("no service account specified for pod {place}")));
    }
    let account = account(review).await?;
    let enforced = text(&account["metadata"]["annotations"][ENFORCE]);
    if !matches!(enforced, "1" | "t" | "T" | "true" | "TRUE" | "True") {
        return Ok(());
    }
    let problem = if is_debugging {
        check_environment(&review.object["spec"], &account, &[("ephemeralContainers", "ephemeral container")])
    } else {
        check_secrets(&review.object["spec"], &account)
    };
    problem.map_err(|problem| review.forbidden(problem))
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// Mirror pods may not use a service account.
fn check_mirror(review: &Review<'_>) -> Result<(), Refusal> {
    let spec = &review.object["spec"];
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Err(review.forbidden("a mirror pod may not reference service accounts"));
    }
    let volumes = || items(&spec["volumes"]);
    let containers = ["containers", "initContainers", "ephemeralContainers"];
    let names_secret = volumes().any(|volume| volume.get("secret").is_some())
        || !is_empty(&spec["imagePullSecrets"])
        || containers.iter().flat_map(|field| items(&spec[field])).any(|it| secrets_of(it).next().is_some());
    if names_secret {
        return Err(review.forbidden("a mirror pod may not reference secrets"));
    }
    let projected = volumes().flat_map(|volume| items(&volume["projected"]["sources"]));
    if projected.into_iter().any(|source| source.get("serviceAccountToken").is_some()) {
        return Err(review.forbidden("a mirror pod may not use ServiceAccountToken volume projections"));
    }
    Ok(())
}

async fn account(review: &Review<'_>) -> Result<Value, Refusal> {
    let (namespace, name) = (review.namespace(), text(&review.object["spec"]["serviceAccountName"]));
    let problems = NameRule::PathSegment.problems(name);
    if !problems.is_empty() {
        let problem = format!("invalid resource name {}: [{}]", go::quote(name), problems.join(" "));
        return Err(
            review.forbidden(format!("error looking up service account {namespace}/{name}: {problem}"))
        );
    }
    let found = lookup::object(&review.call.inner, ("", "v1", "serviceaccounts"), namespace, name).await?;
    found.ok_or_else(|| {
        let missing = format!("serviceaccount {} not found", go::quote(name));
        review.forbidden(format!("error looking up service account {namespace}/{name}: {missing}"))
    })
}

/// Mounts the token unless the container mounts something at that path.
fn mount(spec: &mut Value, suffix: &str) {
    let own = items(&spec["volumes"]).map(|volume| text(&volume["name"]));
    let own = own.into_iter().find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let name = own.clone().unwrap_or_else(|| format!("{VOLUME_PREFIX}{suffix}"));
    let mut is_needed = false;
    for field in ["initContainers", "containers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            if items(&container["volumeMounts"]).any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            push(container, "volumeMounts", json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
            is_needed = true;
        }
    }
    if own.is_none() && is_needed {
        push(spec, "volumes", json!({"name": name, "projected": token_volume()}));
    }
}

fn token_volume() -> Value {
    json!({
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ],
    })
}

fn push(object: &mut Value, field: &str, item: Value) {
    match object[field].as_array_mut() {
        Some(items) => items.push(item),
        None => object[field] = json!([item]),
    }
}

fn check_secrets(spec: &Value, account: &Value) -> Result<(), String> {
    let (known, name) = (names(&account["secrets"]), object::name(account));
    for volume in items(&spec["volumes"]) {
        let Some(secret) = volume["secret"]["secretName"].as_str() else { continue };
        if !known.contains(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {name} does not \
                 reference that secret"
            ));
        }
    }
    check_environment(spec, account, &[("initContainers", "init container"), ("containers", "container")])?;
    let known = names(&account["imagePullSecrets"]);
    for (at, secret) in items(&spec["imagePullSecrets"]).enumerate() {
        let secret = text(&secret["name"]);
        if !known.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{at}].name=\"{secret}\" is not allowed because service account {name} does not \
                 reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

fn check_environment(spec: &Value, account: &Value, lists: &[(&str, &str)]) -> Result<(), String> {
    let (known, name) = (names(&account["secrets"]), object::name(account));
    for (field, what) in lists {
        for container in items(&spec[field]) {
            let mut unknown = secrets_of(container).filter(|(_, secret)| !known.contains(secret));
            if let Some((through, secret)) = unknown.next() {
                let own = text(&container["name"]);
                return Err(format!(
                    "{what} {own} with {through} referencing secret.secretName=\"{secret}\" is not allowed because \
                     service account {name} does not reference that secret"
                ));
            }
        }
    }
    Ok(())
}

/// The secrets that a container's environment references, and the field.
fn secrets_of(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let single = items(&container["env"]).filter_map(|variable| {
        let secret = variable["valueFrom"]["secretKeyRef"].get("name")?;
        Some((format!("envVar {}", text(&variable["name"])), text(secret)))
    });
    let whole = items(&container["envFrom"])
        .filter_map(|source| Some(("envFrom".to_owned(), text(source["secretRef"].get("name")?))));
    single.chain(whole)
}

fn names(references: &Value) -> BTreeSet<&str> {
    items(references).map(|it| text(&it["name"])).collect()
}

fn items(list: &Value) -> std::slice::Iter<'_, Value> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn is_empty(list: &Value) -> bool {
    items(list).next().is_none()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
