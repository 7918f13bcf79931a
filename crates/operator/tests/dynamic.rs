//! Controllers of kinds that are known only when the program runs.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta},
};
use operator::{
    Context, Controller, Failure, Key, Manager, Next,
    apply::{Force, Set},
    dynamic, owner,
};
use serde_json::json;
use testkit::Cluster;

fn kind(name: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", name))
}

async fn define(cluster: &Cluster) {
    for (kind, plural) in [("Widget", "widgets"), ("Part", "parts"), ("Colour", "colours")] {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        }});
        cluster.apply(&definition.to_string()).await;
    }
    cluster.settle().await;
}

/// Gives each widget a part, and writes the parts and the colour of the widget into a ConfigMap.
async fn assemble(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let (widgets, parts, colours) = (kind("Widget"), kind("Part"), kind("Colour"));
    let Some(widget) = context.get_of::<DynamicObject>(&widgets, &key)? else { return Ok(Next::Settled) };
    let namespace = key.namespace().unwrap_or_default();
    let mut part = DynamicObject::new(&format!("{}-part", key.name()), &parts).within(namespace);
    owner::control_with(&*widget, &widgets, &mut part)?;
    let api: Api<DynamicObject> = Api::namespaced_with(context.client(), namespace, &parts);
    api.patch(&part.name_any(), &PatchParams::apply("assembler").force(), &Patch::Apply(&part)).await?;

    let uid = widget.uid().unwrap_or_default();
    let owned = context.view_of::<PartialObjectMeta<DynamicObject>>(&parts)?.owned_by(&uid)?.len();
    let colour = Key::new(Some(namespace), widget.data["spec"]["colour"].as_str().unwrap_or("none"));
    let colour = context.get_of::<DynamicObject>(&colours, &colour)?;
    let colour =
        colour.map_or_else(|| "unknown".to_owned(), |colour| colour.data["spec"]["code"].to_string());
    let report = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name()},
        "data": {"parts": owned.to_string(), "colour": colour}});
    let maps: Api<ConfigMap> = context.namespaced(&key);
    maps.patch(key.name(), &PatchParams::apply("assembler").force(), &Patch::Apply(&report)).await?;
    Ok(Next::Settled)
}

async fn report(cluster: &Cluster) -> String {
    let data = cluster.get::<ConfigMap>("default", "chair").await.data.unwrap_or_default();
    format!("{} part, colour {}", data["parts"], data["colour"])
}

#[test]
fn a_controller_reconciles_owns_watches_and_reads_dynamic_kinds() {
    testkit::run(|cluster| async move {
        define(&cluster).await;
        let controller = Controller::new("assembler", dynamic(&kind("Widget")))
            .owns(dynamic(&kind("Part")).metadata_only())
            .watches_through(dynamic(&kind("Colour")), |widgets, colour| {
                let widgets = widgets.list().unwrap_or_default();
                let painted = widgets.iter().filter(|it| it.data["spec"]["colour"] == colour.name_any());
                painted.map(|widget| Key::of(&**widget)).collect()
            })
            .applies_dynamic(&kind("Part"))
            .reconcile((), assemble);
        let running = Manager::new("test", cluster.world(), cluster.client()).controller(controller).start();
        cluster.watch_idle("test", running.idle_probe());
        cluster
            .apply("{apiVersion: example.com/v1, kind: Widget, metadata: {name: chair}, spec: {colour: red}}")
            .await;
        cluster.settle().await;
        assert_eq!(report(&cluster).await, "1 part, colour unknown");

        cluster
            .apply("{apiVersion: example.com/v1, kind: Colour, metadata: {name: red}, spec: {code: 7}}")
            .await;
        cluster.settle().await;
        assert_eq!(report(&cluster).await, "1 part, colour 7");

        let parts: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &kind("Part"));
        parts.delete("chair-part", &Default::default()).await.unwrap();
        cluster.settle().await;
        assert!(parts.get_opt("chair-part").await.unwrap().is_some(), "the loss of a part wakes its owner");
        running.stop().await.unwrap();
    });
}

#[test]
fn children_of_dynamic_kinds_are_applied_and_pruned_as_a_set() {
    testkit::run(|cluster| async move {
        define(&cluster).await;
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}").await;
        let parts: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &kind("Part"));
        let mut names = Vec::new();
        for wanted in [&["leg", "seat"][..], &["seat"], &[]] {
            let owner: ConfigMap = cluster.get("default", "owner").await;
            let mut set = Set::of(&owner, "assembler").unwrap();
            for name in wanted {
                let part = DynamicObject::new(name, &kind("Part"))
                    .within("default")
                    .data(json!({"spec": {"colour": "red"}}));
                set.add_dynamic(&kind("Part"), part).unwrap();
            }
            set.apply(&cluster.client(), Force::No).await.unwrap();
            let present = parts.list(&Default::default()).await.unwrap();
            for part in &present {
                assert_eq!(part.data["spec"]["colour"], "red");
                assert_eq!(part.owner_references()[0].uid, owner.uid().unwrap());
            }
            names.push(present.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(" "));
        }
        assert_eq!(names, ["leg seat", "seat", ""]);
    });
}

#[test]
fn reading_an_undeclared_dynamic_kind_is_a_terminal_failure() {
    testkit::run(|cluster| async move {
        define(&cluster).await;
        let (failures, seen) = std::sync::mpsc::sync_channel(100);
        let controller = Controller::new("reader", dynamic(&kind("Widget"))).reconcile(
            failures,
            |context: Context<std::sync::mpsc::SyncSender<String>>, key| async move {
                let read = context.get_of::<DynamicObject>(&kind("Part"), &key);
                context.state().send(read.unwrap_err().to_string()).unwrap();
                Ok(Next::Settled)
            },
        );
        let running = Manager::new("test", cluster.world(), cluster.client()).controller(controller).start();
        cluster.watch_idle("test", running.idle_probe());
        cluster.apply("{apiVersion: example.com/v1, kind: Widget, metadata: {name: chair}}").await;
        cluster.settle().await;
        let failure = seen.recv().unwrap();
        assert!(failure.contains("reads Part without having declared it"), "{failure}");
    });
}
