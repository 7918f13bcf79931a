//! What is sent for a set, without a server.

use super::*;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Secret},
};

fn owner(annotations: &[(&str, &str)]) -> ConfigMap {
    let mut owner = ConfigMap::default();
    owner.metadata.name = Some("web".into());
    owner.metadata.namespace = Some("prod".into());
    owner.metadata.uid = Some("u-1".into());
    owner.metadata.annotations = (!annotations.is_empty())
        .then(|| annotations.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    owner
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.into());
    object
}

fn kinds(text: &str) -> BTreeSet<MemberKind> {
    prune::read(text)
}

#[test]
fn a_body_holds_intent_only() {
    let mut object: ConfigMap = named("c");
    object.metadata.uid = Some("x".into());
    object.metadata.resource_version = Some("7".into());
    object.metadata.managed_fields = Some(Vec::new());
    object.data = Some([("a".to_owned(), "b".to_owned())].into());
    assert_eq!(
        intent(&object, &ApiResource::erase::<ConfigMap>(&())).unwrap(),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "a": "b" } })
    );
}

#[test]
fn a_child_belongs_to_its_owner_and_set() {
    let owner = owner(&[]);
    let mut set = Set::of(&owner, "ctl").unwrap();
    set.add(named::<ConfigMap>("c")).unwrap();
    let metadata = &set.children[0].body["metadata"];
    assert_eq!(metadata["labels"], json!({ "setpoint.dev/set": label("ctl", "u-1") }));
    assert_eq!(metadata["namespace"], json!("prod"));
    assert_eq!(metadata["ownerReferences"][0]["uid"], json!("u-1"));
}

#[test]
fn children_that_cannot_be_are_refused() {
    let owner = owner(&[]);
    let mut set = Set::of(&owner, "ctl").unwrap();
    set.add(named::<ConfigMap>("c")).unwrap();
    set.add(named::<Secret>("c")).unwrap();
    let mut far: ConfigMap = named("far");
    far.metadata.namespace = Some("dev".into());
    let refusals = [
        set.add(named::<ConfigMap>("c")).err(),
        set.add(ConfigMap::default()).err(),
        set.add(named::<Namespace>("n")).err(),
        set.add(far).err(),
    ];
    assert_eq!(
        refusals.map(|refusal| refusal.unwrap().to_string()),
        [
            r#"ConfigMap "c" is in the set twice"#,
            "a ConfigMap of the set has no name",
            r#"owner "web" is in namespace "prod", child "n" in none"#,
            r#"owner "web" is in namespace "prod", child "far" in "dev""#,
        ]
    );
}

#[test]
fn children_come_after_what_they_need() {
    let owner = owner(&[]);
    let mut set = Set::of(&owner, "ctl").unwrap();
    set.add(named::<Deployment>("d")).unwrap();
    set.add(named::<Secret>("s")).unwrap();
    set.add(named::<ConfigMap>("c")).unwrap();
    set.children.sort_by(|one, other| one.order().cmp(&other.order()));
    assert_eq!(set.children.iter().map(|child| child.name.as_str()).collect::<Vec<_>>(), ["c", "s", "d"]);
}

#[test]
fn the_record_is_tested_before_it_is_changed() {
    let key = annotation("ctl");
    assert_eq!(key, "setpoint.dev/ctl-children");
    let path = "/metadata/annotations/setpoint.dev~1ctl-children";
    let uid = json!({ "op": "test", "path": "/metadata/uid", "value": "u-1" });
    let with = owner(&[("setpoint.dev/ctl-children", "configmaps.v1")]);
    assert_eq!(recorded(&with.metadata, "ctl"), kinds("configmaps.v1"));
    let cases = [
        (
            record(&owner(&[]).metadata, &key, &kinds(""), &kinds("secrets.v1")),
            json!([
                uid,
                { "op": "test", "path": "/metadata/annotations", "value": null },
                { "op": "add", "path": "/metadata/annotations", "value": { "setpoint.dev/ctl-children": "secrets.v1" } },
            ]),
        ),
        (
            record(&owner(&[("a", "b")]).metadata, &key, &kinds(""), &kinds("secrets.v1")),
            json!([
                uid,
                { "op": "test", "path": path, "value": null },
                { "op": "add", "path": path, "value": "secrets.v1" },
            ]),
        ),
        (
            record(&with.metadata, &key, &kinds("configmaps.v1"), &kinds("")),
            json!([
                uid,
                { "op": "test", "path": path, "value": "configmaps.v1" },
                { "op": "remove", "path": path },
            ]),
        ),
    ];
    for (patch, expected) in cases {
        assert_eq!(patch, expected);
    }
}
