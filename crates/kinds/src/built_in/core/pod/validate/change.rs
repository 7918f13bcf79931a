//! What may change in a pod: little, because something already runs.

use api::field::{Error, ErrorList, Path};
use serde_json::{Map, Value};

use super::annotations::{APP_ARMOR, MIRROR};
use super::status::first_by_name;
use super::{annotations, containers, content, placement};
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::{internal, metadata};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to \
    be set to 1 if it was previously negative)";

/// Through the pod itself.
pub(crate) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    as_any_time(new, errors);
    changed_annotations(new, old, errors);
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    for list in ["containers", "initContainers"] {
        let (list, old_list) = (spec.field(list), old_spec.field(list));
        if list.list().len() != old_list.list().len() {
            list.forbidden(errors, "pod updates may not add or remove containers");
            return;
        }
        for container in list.items() {
            if container.text_of("image").is_empty() {
                container.field("image").required(errors, "");
            }
            containers::unpadded_image(&container, errors);
        }
    }
    if !deadline(&spec, &old_spec, errors) {
        return;
    }
    added_tolerations(&spec.field("tolerations"), &old_spec.field("tolerations"), errors);
    deleted_gates(&spec.field("schedulingGates"), &old_spec.field("schedulingGates"), errors);
    rest_of_spec(&spec, &old_spec, errors);
}

/// Metadata and spec, as a new pod must have them.
pub(super) fn as_any_time(pod: &At<'_, '_>, errors: &mut ErrorList) {
    metadata::create(pod.value(), api::meta::Scope::Namespaced, api::name::NameRule::DnsSubdomain, errors);
    content(pod, errors);
}

pub(super) fn changed_annotations(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (metadata, old_metadata) = (new.field("metadata"), old.field("metadata"));
    let (now, before) = (metadata.field("annotations"), old_metadata.field("annotations"));
    let is_guarded = |key: &str| key == MIRROR || key.starts_with(APP_ARMOR);
    let what = |key: &str| if key == MIRROR { "mirror pod annotation" } else { "AppArmor annotations" };
    for (key, value) in before.entries().filter(|(key, _)| is_guarded(key)) {
        if now.value().get(key) != Some(value.value()) {
            let problem = format!("may not remove or update {}", what(key));
            errors.push(Error::forbidden(&now.path().key(key), problem));
        }
    }
    for (key, value) in now.entries().filter(|(key, _)| is_guarded(key) && !before.has(key)) {
        value.forbidden(errors, format!("may not add {}", what(key)));
    }
    annotations(&now, &new.field("spec"), errors);
}

/// Whether it makes sense to go on.
fn deadline(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) -> bool {
    let (now, before) = (spec.field("activeDeadlineSeconds"), old.field("activeDeadlineSeconds"));
    if !now.is_set() {
        if before.is_set() {
            now.invalid(errors, "must not update from a positive integer to nil value");
        }
        return true;
    }
    let problem = match now.int() {
        seconds if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            format!("must be between 0 and {}, inclusive", i32::MAX)
        }
        seconds if before.is_set() && before.int() < seconds => {
            "must be less than or equal to previous value".to_owned()
        }
        _ => return true,
    };
    now.invalid_int(errors, problem);
    false
}

fn added_tolerations(now: &At<'_, '_>, before: &At<'_, '_>, errors: &mut ErrorList) {
    let strip = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.as_object_mut().map(|fields| fields.remove("tolerationSeconds"));
        toleration
    };
    let kept = now.list().iter().map(strip).collect::<Taken<_>>();
    if before.list().iter().any(|old| !kept.contains(&strip(old))) {
        now.forbidden(errors, "existing toleration can not be modified except its tolerationSeconds");
        return;
    }
    placement::tolerations(now, errors);
}

fn deleted_gates(now: &At<'_, '_>, before: &At<'_, '_>, errors: &mut ErrorList) {
    let before = before.items().map(|old| old.text_of("name")).collect::<Taken<_>>();
    for gate in now.items() {
        let name = gate.text_of("name");
        if !before.contains(name) {
            let problem = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            gate.field("name").forbidden(errors, problem);
        }
    }
}

/// The spec but for what may change, which is taken back to what it was.
fn rest_of_spec(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let mut munged = spec.value().clone();
    let Some(fields) = munged.as_object_mut() else { return };
    for list in ["containers", "initContainers"] {
        restore_items(fields.get_mut(list), old.field(list).list(), "image");
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(fields, old.value(), field);
    }
    let grace = "terminationGracePeriodSeconds";
    if old.int_of(grace) < 0 && spec.int_of(grace) == 1 {
        restore(fields, old.value(), grace);
    }
    if !old.field("schedulingGates").is_empty() {
        gated_placement(fields, spec, old, errors);
    }
    if munged != *old.value() {
        let change = internal::changed_core("PodSpec", old.value(), &munged);
        let problem = format!("pod updates may not change fields other than {UPDATABLE}\n{change}");
        spec.forbidden(errors, problem);
    }
}

/// Before it is scheduled, a gated pod may narrow where it runs.
fn gated_placement(
    fields: &mut Map<String, Value>,
    spec: &At<'_, '_>,
    old: &At<'_, '_>,
    errors: &mut ErrorList,
) {
    let (now, before) = (spec.field("nodeSelector"), old.field("nodeSelector"));
    if before.entries().any(|(key, value)| now.value().get(key) != Some(value.value())) {
        let problem = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        now.invalid(errors, problem);
    }
    restore(fields, old.value(), "nodeSelector");
    narrowed_terms(spec, old, errors);
    let before = old.value().pointer("/affinity/nodeAffinity").cloned();
    let mut affinity = fields.get("affinity").and_then(Value::as_object).cloned().unwrap_or_default();
    match before {
        Some(before) => affinity.insert("nodeAffinity".to_owned(), before),
        None => affinity.remove("nodeAffinity"),
    };
    if affinity.is_empty() && !old.has("affinity") {
        fields.remove("affinity");
    } else {
        fields.insert("affinity".to_owned(), affinity.into());
    }
}

/// Terms on nodes are alternatives, so that each of them may only ask for more.
fn narrowed_terms(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let terms = |spec: &At<'_, '_>| {
        let place = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        spec.value().pointer(place).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (now, before) = (terms(spec), terms(old));
    let path = Path::new("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");
    let path = path.child("nodeSelectorTerms");
    if !before.is_empty() && before.len() != now.len() {
        let shown = internal::shown_core_list("NodeSelectorTerm", &now);
        let problem = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(Error::invalid(&path, shown, problem));
        return;
    }
    for (at, (now, before)) in now.iter().zip(&before).enumerate() {
        let list = |term: &Value, name: &str| term[name].as_array().cloned().unwrap_or_default();
        let lists = ["matchExpressions", "matchFields"].map(|name| (list(now, name), list(before, name)));
        let said_nothing = lists.iter().all(|(_, before)| before.is_empty());
        let is_widened = match said_nothing {
            true => lists.iter().any(|(now, _)| !now.is_empty()),
            false => lists.iter().any(|(now, before)| !now.starts_with(before)),
        };
        if is_widened {
            let shown = internal::shown("io.k8s.api.core.v1.NodeSelectorTerm", now);
            let problem = "only additions are allowed (no mutations or deletions)";
            errors.push(Error::invalid(&path.index(at), shown, problem));
        }
    }
}

pub(super) fn restore(fields: &mut Map<String, Value>, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

fn restore_items(items: Option<&mut Value>, old: &[Value], field: &str) {
    let items = items.and_then(Value::as_array_mut).into_iter().flatten();
    for (item, old) in items.zip(old) {
        if let Some(fields) = item.as_object_mut() {
            restore(fields, old, field);
        }
    }
}

/// Through `ephemeralcontainers`, which may only grow.
pub(crate) fn ephemeral_containers(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if api::object::annotation(old.value(), MIRROR).is_some() {
        let problem = "static pods do not support ephemeral containers";
        *errors = Error::forbidden(&Path::new(""), problem).into();
        return;
    }
    as_any_time(new, errors);
    changed_annotations(new, old, errors);
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let (now, before) = (spec.field("ephemeralContainers"), old_spec.field("ephemeralContainers"));
    let by_name = first_by_name(&now);
    for old in before.items() {
        let name = old.text_of("name");
        let quoted = api::go::quote(name);
        match by_name.get(name) {
            None => {
                now.forbidden(errors, format!("existing ephemeral containers {quoted} may not be removed\n"))
            }
            Some(new) if new.value() != old.value() => {
                let change = internal::changed_core("EphemeralContainer", old.value(), new.value());
                let problem = format!("existing ephemeral containers {quoted} may not be changed\n{change}");
                now.forbidden(errors, problem);
            }
            Some(_) => {}
        }
    }
}
