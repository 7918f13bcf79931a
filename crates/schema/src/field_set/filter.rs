//! Which fields a manager can own through a resource or subresource.

use super::{Element, FieldSet};

/// What a resource lets its callers own. A status resource never writes the spec, so no manager comes to own
/// the spec through it.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    #[default]
    All,
    /// All but these fields and those below them.
    Except(FieldSet),
    /// Only fields on or below one of these paths.
    Below(Vec<Vec<Step>>),
}

/// One step of a path in [`Filter::Below`].
#[derive(Clone, Debug)]
pub enum Step {
    Any,
    Only(Element),
}

impl Filter {
    #[must_use]
    pub fn apply(&self, set: FieldSet) -> FieldSet {
        match self {
            Filter::All => set,
            Filter::Except(fields) => set.recursive_difference(fields),
            Filter::Below(paths) => keep_below(set, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        }
    }
}

/// Keeps the fields on the way too: `.spec` itself stays where `.spec.containers` is a path.
fn keep_below(mut set: FieldSet, paths: &[&[Step]]) -> FieldSet {
    if paths.iter().any(|path| path.is_empty()) {
        return set;
    }
    set.entries.retain_mut(|entry| {
        let matching = paths.iter().filter_map(|path| path.split_first());
        let matching = matching.filter(|(step, _)| step.matches(&entry.element));
        let rest: Vec<&[Step]> = matching.map(|(_, rest)| rest).collect();
        if rest.is_empty() {
            return false;
        }
        entry.below = keep_below(std::mem::take(&mut entry.below), &rest);
        entry.member || !entry.below.is_empty()
    });
    set
}

impl Step {
    #[must_use]
    pub fn field(name: &str) -> Self {
        Step::Only(Element::field(name))
    }

    fn matches(&self, element: &Element) -> bool {
        match self {
            Step::Any => true,
            Step::Only(only) => only == element,
        }
    }
}
