//! A built-in kind, said in one place: its strategy, defaults, validation, warnings, columns, selectable fields and
//! conversions.
//!
//! To add a kind: write `built_in/<group>/<kind>.rs` with one `static` of type [`BuiltIn`], and add it to
//! [`BUILT_INS`](list::BUILT_INS). What is not said there is as for most kinds. The types and paths of the kind are
//! data and come from `data/`.

mod list;

pub(crate) mod admissionregistration;
pub(crate) mod apiextensions;
pub(crate) mod apiregistration;
pub(crate) mod apps;
pub(crate) mod authentication;
pub(crate) mod authorization;
pub(crate) mod autoscaling;
pub(crate) mod batch;
pub(crate) mod certificates;
pub(crate) mod coordination;
pub(crate) mod core;
pub(crate) mod discovery;
pub(crate) mod events;
pub(crate) mod flowcontrol;
pub(crate) mod networking;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod resource;
pub(crate) mod scheduling;
pub(crate) mod storage;
pub(crate) mod workload;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::cells::column::{NAME_AND_CREATION, TableColumn};
use crate::convert::VersionConversion;
use crate::defaults::type_defaults::TypeDefaults;
use crate::selectable::Selectable;
use crate::strategy::Strategy;
use crate::validate::validation::{Validation, Warn};

pub(crate) use list::BUILT_INS;

/// Everything that code says about one kind.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    /// Empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// The plural in the URL; empty for a kind that only subresources speak.
    pub(crate) resource: &'static str,
    /// Versions that Kubernetes reads and does not serve, or only where asked to.
    pub(crate) older_versions: &'static [&'static str],
    pub(crate) strategy: Strategy,
    pub(crate) validation: Validation,
    pub(crate) warnings: Option<Warn>,
    /// A version of the kind that should no longer be used, and the warning that says so.
    pub(crate) deprecation: Option<(&'static str, &'static str)>,
    /// Of the types that this kind brings, also where other kinds hold objects of those types.
    pub(crate) defaults: &'static [TypeDefaults],
    pub(crate) columns: &'static [TableColumn],
    /// The order of the rows of a table, where it is not that of the names.
    pub(crate) row_order: Option<fn(&Value, &Value) -> Ordering>,
    /// The conditions of an object's row in a table.
    pub(crate) row_conditions: Option<fn(&Value) -> Vec<Value>>,
    pub(crate) selectable: Selectable,
    pub(crate) conversions: &'static [VersionConversion],
    /// Kubernetes checks and prints its internal type. Where the served versions differ in shape, that is like this
    /// one.
    pub(crate) internal_version: Option<&'static str>,
    /// Annotations that are fields in the internal type of Kubernetes.
    pub(crate) annotations_for_fields: &'static [&'static str],
}

impl BuiltIn {
    pub(crate) const fn new(group: &'static str, kind: &'static str, resource: &'static str) -> Self {
        BuiltIn {
            group,
            kind,
            resource,
            older_versions: &[],
            strategy: Strategy::PLAIN,
            validation: Validation::METADATA,
            warnings: None,
            deprecation: None,
            defaults: &[],
            columns: NAME_AND_CREATION,
            row_order: None,
            row_conditions: None,
            selectable: Selectable::METADATA,
            conversions: &[],
            internal_version: None,
            annotations_for_fields: &[],
        }
    }

    pub(crate) const fn older_versions(mut self, versions: &'static [&'static str]) -> Self {
        self.older_versions = versions;
        self
    }

    pub(crate) const fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    pub(crate) const fn validation(mut self, validation: Validation) -> Self {
        self.validation = validation;
        self
    }

    pub(crate) const fn warnings(mut self, warn: Warn) -> Self {
        self.warnings = Some(warn);
        self
    }

    pub(crate) const fn deprecated(mut self, version: &'static str, warning: &'static str) -> Self {
        self.deprecation = Some((version, warning));
        self
    }

    pub(crate) const fn defaults(mut self, defaults: &'static [TypeDefaults]) -> Self {
        self.defaults = defaults;
        self
    }

    pub(crate) const fn columns(mut self, columns: &'static [TableColumn]) -> Self {
        self.columns = columns;
        self
    }

    pub(crate) const fn row_order(mut self, order: fn(&Value, &Value) -> Ordering) -> Self {
        self.row_order = Some(order);
        self
    }

    pub(crate) const fn row_conditions(mut self, conditions: fn(&Value) -> Vec<Value>) -> Self {
        self.row_conditions = Some(conditions);
        self
    }

    pub(crate) const fn selectable(mut self, selectable: Selectable) -> Self {
        self.selectable = selectable;
        self
    }

    pub(crate) const fn conversions(mut self, conversions: &'static [VersionConversion]) -> Self {
        self.conversions = conversions;
        self
    }

    pub(crate) const fn internal_version(mut self, version: &'static str) -> Self {
        self.internal_version = Some(version);
        self
    }

    pub(crate) const fn annotations_for_fields(mut self, annotations: &'static [&'static str]) -> Self {
        self.annotations_for_fields = annotations;
        self
    }
}

type Index = HashMap<(&'static str, &'static str), &'static BuiltIn>;

/// The built-in kind of a group and a kind.
pub(crate) fn of_kind(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    static BY_KIND: LazyLock<Index> =
        LazyLock::new(|| BUILT_INS.iter().map(|it| ((it.group, it.kind), *it)).collect());
    BY_KIND.get(&(group, kind)).copied()
}

/// The built-in kind of a group and a resource.
pub(crate) fn of_resource(group: &str, resource: &str) -> Option<&'static BuiltIn> {
    static BY_RESOURCE: LazyLock<Index> = LazyLock::new(|| {
        let served = BUILT_INS.iter().filter(|it| !it.resource.is_empty());
        served.map(|it| ((it.group, it.resource), *it)).collect()
    });
    BY_RESOURCE.get(&(group, resource)).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::resources;

    #[test]
    fn every_served_resource_is_listed_with_its_kind() {
        for it in resources() {
            let listed =
                of_resource(&it.group, &it.name).unwrap_or_else(|| panic!("{} {}", it.group, it.name));
            assert_eq!(listed.kind, it.kind, "{} {}", it.group, it.name);
        }
        let is_served =
            |of: &&&BuiltIn| resources().iter().any(|it| (&*it.group, &*it.name) == (of.group, of.resource));
        let unserved: Vec<_> = BUILT_INS.iter().filter(|it| !is_served(it)).map(|it| it.kind).collect();
        assert_eq!(unserved, ["TokenRequest", "Scale", "LeaseCandidate"]);
    }

    #[test]
    fn a_kind_is_listed_once_and_a_type_has_its_defaults_in_one_place() {
        let kinds: HashSet<_> = BUILT_INS.iter().map(|it| (it.group, it.kind)).collect();
        assert_eq!(kinds.len(), BUILT_INS.len());
        let mut types = HashSet::new();
        for defaults in BUILT_INS.iter().flat_map(|it| it.defaults) {
            assert!(types.insert(defaults.type_name), "{}", defaults.type_name);
        }
    }
}
