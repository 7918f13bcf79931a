//! The names that the definitions of one group have got.

use std::collections::BTreeMap;

use super::DefinitionNames;

/// Names, each with how many times it was given: one definition can have the same for two purposes.
#[derive(Clone, Debug, Default)]
pub struct InUse {
    resources: BTreeMap<String, usize>,
    kinds: BTreeMap<String, usize>,
}

impl InUse {
    /// Counts what a definition has got.
    pub fn add(&mut self, names: &DefinitionNames) {
        let (resources, kinds) = given(names);
        resources.for_each(|name| *self.resources.entry(name.to_owned()).or_default() += 1);
        kinds.for_each(|name| *self.kinds.entry(name.to_owned()).or_default() += 1);
    }

    /// Gives back what was counted.
    pub fn remove(&mut self, names: &DefinitionNames) {
        let (resources, kinds) = given(names);
        resources.for_each(|name| release(&mut self.resources, name));
        kinds.for_each(|name| release(&mut self.kinds, name));
    }

    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.kinds.is_empty()
    }

    pub(super) fn has_resource(&self, name: &str) -> bool {
        self.resources.contains_key(name)
    }

    pub(super) fn has_kind(&self, name: &str) -> bool {
        self.kinds.contains_key(name)
    }
}

fn given(names: &DefinitionNames) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
    let DefinitionNames { plural, singular, kind, list_kind, short_names, .. } = names;
    let resources = [plural, singular].into_iter().chain(short_names).map(String::as_str);
    let kinds = [kind, list_kind].into_iter().map(String::as_str);
    (resources.filter(|name| !name.is_empty()), kinds.filter(|name| !name.is_empty()))
}

fn release(names: &mut BTreeMap<String, usize>, name: &str) {
    match names.get_mut(name) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(names.remove(name)),
    }
}
