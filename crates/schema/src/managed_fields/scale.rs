//! Translates owners of an object's replicas to owners of its scale, and back.
//!
//! A scale is a view of another object, so a manager that writes its `spec.replicas` owns a field of that
//! object.

use std::collections::BTreeSet;

use super::owner::Owner;
use super::owners::{Holding, Owners};
use crate::field_set::{FieldSet, Path};

const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in each version of a resource, by group and version.
pub type Replicas<'a> = [(&'a str, Option<Path>)];

fn replicas_of_scale() -> Path {
    Path::of_fields(["spec", "replicas"])
}

/// The owners of the object's replicas, as owners of the scale.
#[must_use]
pub fn to_scale(owners: &Owners, replicas: &Replicas<'_>) -> Owners {
    let mut scale = Owners::default();
    for (owner, holding) in owners.iter() {
        let path = replicas
            .iter()
            .find(|(version, _)| *version == holding.version)
            .and_then(|(_, path)| path.as_ref());
        if path.is_some_and(|path| holding.fields.has(path)) {
            let holding = Holding {
                version: SCALE_VERSION.to_owned(),
                fields: only(&replicas_of_scale()),
                time: holding.time.clone(),
            };
            scale.0.insert(owner.clone(), holding);
        }
    }
    scale
}

/// The owners of the object after a write of the scale left `scale` as its owners; `version` is that of the
/// object.
#[must_use]
pub fn to_object(owners: &Owners, scale: &Owners, replicas: &Replicas<'_>, version: &str) -> Owners {
    let path_in =
        |version: &str| replicas.iter().find(|(of, _)| *of == version).map(|(_, path)| path.as_ref());
    let owns = |holding: &Holding| holding.fields.has(&replicas_of_scale());
    // Writes through the scale were in its version.
    let in_version = |owner: &Owner| Owner {
        version: owner.version.as_ref().map(|_| version.to_owned()),
        ..owner.clone()
    };
    let scalers: BTreeSet<Owner> =
        scale.iter().filter(|(_, holding)| owns(holding)).map(|(owner, _)| in_version(owner)).collect();

    let mut object = Owners::default();
    for (owner, holding) in owners.iter() {
        let Some(path) = path_in(&holding.version) else { continue };
        let mut holding = holding.clone();
        if let Some(path) = path.filter(|_| !scalers.contains(owner)) {
            holding.fields = holding.fields.difference(&only(path));
        }
        object.0.insert(owner.clone(), holding);
    }
    object.drop_empty();
    if let Some(Some(path)) = path_in(version) {
        for owner in scalers {
            // Kubernetes: a manager that comes to own replicas only through the scale has no time.
            let holding = Holding { version: version.to_owned(), fields: FieldSet::default(), time: None };
            let holding = object.0.entry(owner).or_insert(holding);
            holding.fields.insert(path);
        }
    }
    object
}

fn only(path: &Path) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn owners(entries: &[(&str, &str, &str, &str, Value)]) -> Owners {
        let entries = entries.iter().map(|(manager, operation, version, subresource, fields)| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": version, "subresource": subresource,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields},
            })
        });
        Owners::decode(Some(&entries.collect())).unwrap()
    }

    #[test]
    fn writing_the_scale_takes_over_the_replicas() {
        let replicas = [("apps/v1", Some(Path::of_fields(["spec", "replicas"]))), ("apps/v2", None)];
        let both = json!({"f:replicas": {}, "f:selector": {}});
        let only = json!({"f:replicas": {}});
        let rest = json!({"f:selector": {}});
        let object = owners(&[
            ("t", "Update", "apps/v1", "", both.clone()),
            ("v2", "Apply", "apps/v2", "", rest.clone()),
        ]);
        let seen = owners(&[("t", "Update", "autoscaling/v1", "", only.clone())]);
        assert_eq!(to_scale(&object, &replicas).encode(), seen.encode());
        for (scale, expected) in [
            (seen, object.clone()),
            (
                owners(&[("s", "Update", "autoscaling/v1", "scale", only.clone())]),
                owners(&[
                    ("s", "Update", "apps/v1", "scale", only),
                    ("t", "Update", "apps/v1", "", rest.clone()),
                    ("v2", "Apply", "apps/v2", "", rest.clone()),
                ]),
            ),
            (
                Owners::default(),
                owners(&[("t", "Update", "apps/v1", "", rest.clone()), ("v2", "Apply", "apps/v2", "", rest)]),
            ),
        ] {
            assert_eq!(to_object(&object, &scale, &replicas, "apps/v1").encode(), expected.encode());
        }
    }
}
