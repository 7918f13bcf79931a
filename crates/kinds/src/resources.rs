//! `data/resources.txt` and the columns of the kinds in, every served resource out.

use std::borrow::Cow;
use std::sync::LazyLock;

use schema::types::Name;

use crate::cells::column;
use crate::{built_in, or_empty};

static TEXT: &str = include_str!("../data/resources.txt");

/// What is served under one path: `deployments` of `apps/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: Name,
    pub version: Name,
    /// The plural in the URL.
    pub name: Name,
    pub singular: Name,
    pub kind: Name,
    pub scope: Scope,
    /// Sorted, as discovery lists them.
    pub verbs: Vec<Name>,
    pub short_names: Vec<Name>,
    pub categories: Vec<Name>,
    /// `None` where nothing is kept: reviews and bindings.
    pub storage: Option<Storage>,
    pub subresources: Vec<Subresource>,
    /// What `kubectl get` shows. Empty: name and age.
    pub columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// Where the real server keeps the objects of a resource, and in which version.
///
/// Resources that share it are two faces of the same objects: `events` of the core group and of
/// `events.k8s.io`, `horizontalpodautoscalers` of `autoscaling/v1` and `v2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    pub group: Name,
    /// Not always a version that is served: a release keeps writing what the one before it can read.
    pub version: Name,
    /// The directory under `/registry/`: `services/specs`.
    pub prefix: Name,
}

/// A further path below an object: `scale` of `deployments`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    pub name: Name,
    /// Of the kind that is read and written there, `Scale` of `autoscaling/v1`.
    pub group: Name,
    pub version: Name,
    pub kind: Name,
    pub verbs: Vec<Name>,
}

/// A column of the table that `kubectl get` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: Name,
    pub type_name: Name,
    pub format: Name,
    /// 0 is always shown, 1 only by `-o wide`.
    pub priority: i32,
}

/// Every built-in resource, in the order of discovery; of a group's versions the preferred one comes first.
pub fn resources() -> &'static [Resource] {
    static RESOURCES: LazyLock<Vec<Resource>> =
        LazyLock::new(|| read(TEXT).expect("carry.py writes what is read here"));
    &RESOURCES
}

fn read(text: &'static str) -> Option<Vec<Resource>> {
    let mut resources: Vec<Resource> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('@') {
            Some(head) => resources.push(resource(head)?),
            None => describe(resources.last_mut()?, line)?,
        }
    }
    resources.iter_mut().for_each(|it| it.columns = columns(it));
    Some(resources)
}

/// The headers of the table of a resource. What cannot be read has no table.
fn columns(of: &Resource) -> Vec<Column> {
    let built_in =
        built_in::of_kind(&of.group, &of.kind).filter(|_| of.verbs.iter().any(|verb| verb == "get"));
    let columns = built_in.map_or(&[][..], |it| it.columns).iter().filter(|column| column.has_header);
    let header = |it: &column::TableColumn| Column {
        name: name(it.name),
        type_name: name(it.type_name),
        format: name(it.format),
        priority: it.priority,
    };
    columns.map(header).collect()
}

fn name(text: &'static str) -> Name {
    Cow::Borrowed(text)
}

fn resource(head: &'static str) -> Option<Resource> {
    let mut words = head.split(' ');
    Some(Resource {
        group: name(or_empty(words.next()?)),
        version: name(words.next()?),
        name: name(words.next()?),
        singular: name(words.next()?),
        kind: name(words.next()?),
        scope: if words.next()? == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        storage: None,
        subresources: Vec::new(),
        columns: Vec::new(),
    })
}

fn describe(resource: &mut Resource, line: &'static str) -> Option<()> {
    let (what, rest) = line.split_once(' ')?;
    let mut words = rest.split(' ');
    match what {
        "verbs" => resource.verbs = words.map(name).collect(),
        "short" => resource.short_names = words.map(name).collect(),
        "categories" => resource.categories = words.map(name).collect(),
        "store" => {
            let (group, version) = (name(or_empty(words.next()?)), name(words.next()?));
            resource.storage = Some(Storage { group, version, prefix: name(words.next()?) });
        }
        "sub" => {
            let called = name(words.next()?);
            let (group, version) = match (words.next()?, words.next()?) {
                ("-", "-") => (resource.group.clone(), resource.version.clone()),
                (group, version) => (name(or_empty(group)), name(version)),
            };
            let kind = name(words.next()?);
            let verbs = words.map(name).collect();
            resource.subresources.push(Subresource { name: called, group, version, kind, verbs });
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(group: &str, version: &str, name: &str) -> &'static Resource {
        let same = |it: &&Resource| (&*it.group, &*it.version, &*it.name) == (group, version, name);
        resources().iter().find(same).unwrap()
    }

    #[test]
    fn storage_is_that_of_the_real_server() {
        for (group, version, name, expected) in [
            ("", "v1", "pods", "/v1 pods"),
            ("", "v1", "services", "/v1 services/specs"),
            ("", "v1", "nodes", "/v1 minions"),
            ("", "v1", "events", "/v1 events"),
            ("events.k8s.io", "v1", "events", "/v1 events"),
            ("autoscaling", "v1", "horizontalpodautoscalers", "autoscaling/v2 horizontalpodautoscalers"),
            ("autoscaling", "v2", "horizontalpodautoscalers", "autoscaling/v2 horizontalpodautoscalers"),
            ("networking.k8s.io", "v1", "ingresses", "networking.k8s.io/v1 ingress"),
        ] {
            let Storage { group: at, version: stored, prefix } =
                found(group, version, name).storage.as_ref().unwrap();
            assert_eq!(format!("{at}/{stored} {prefix}"), expected, "{group}/{version} {name}");
        }
        assert_eq!(found("", "v1", "bindings").storage, None);
    }

    #[test]
    fn a_deployment_is_served_in_full() {
        let deployments = found("apps", "v1", "deployments");
        assert_eq!((&*deployments.singular, &*deployments.kind), ("deployment", "Deployment"));
        assert_eq!(deployments.short_names, ["deploy"]);
        assert_eq!(deployments.categories, ["all"]);
        assert_eq!(deployments.scope, Scope::Namespaced);
        let scale = &deployments.subresources[0];
        assert_eq!(
            (&*scale.name, &*scale.group, &*scale.version, &*scale.kind),
            ("scale", "autoscaling", "v1", "Scale")
        );
        assert_eq!(deployments.subresources[1].group, "apps");
        let columns: Vec<_> = deployments.columns.iter().map(|it| (&*it.name, it.priority)).collect();
        assert_eq!(columns[2..6], [("Up-to-date", 0), ("Available", 0), ("Age", 0), ("Containers", 1)]);
    }

    #[test]
    fn columns_are_those_of_the_real_server() {
        let of = |it: &Resource| {
            let group = if it.group.is_empty() { "-" } else { &*it.group };
            let head = format!("@{group} {} {}\n", it.version, it.name);
            let line = |column: &Column| {
                let format = if column.format.is_empty() { "-" } else { &*column.format };
                format!("{} {format} {} {}\n", column.type_name, column.priority, column.name)
            };
            head + &it.columns.iter().map(line).collect::<String>()
        };
        let found: String = resources().iter().filter(|it| !it.columns.is_empty()).map(of).collect();
        let recorded = include_str!("../data/columns.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(found.lines().collect::<Vec<_>>(), recorded.collect::<Vec<_>>());
    }

    #[test]
    fn every_resource_has_a_type() {
        let mut groups: Vec<_> = resources().iter().map(|it| &it.group).collect();
        groups.dedup();
        assert_eq!((resources().len(), groups.len()), (68, 21));
        for it in resources() {
            assert!(crate::types().kind(&it.group, &it.version, &it.kind).is_some(), "{it:?}");
            if let Some(at) = &it.storage {
                assert!(crate::types().kind(&at.group, &at.version, &it.kind).is_some(), "{at:?}");
            }
        }
    }
}
