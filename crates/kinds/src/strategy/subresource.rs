//! A subresource that writes the object itself, through a narrow window: `finalize`, `approval`, `resize`.

use schema::field_set::{FieldSet, Filter, Step};

use super::disabled::EACH;
use super::{Path, UpdateRule};

/// What a write to a subresource does. Every kind with a status has `status`, which needs no such entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubresourceRules {
    pub(super) name: &'static str,
    /// Keeps of the old object what this subresource does not write.
    pub(super) prepare: UpdateRule,
    pub(super) counts_generation: bool,
    writes: Writes,
}

/// Which fields a writer comes to own.
#[derive(Clone, Copy, Debug)]
enum Writes {
    AllBut(&'static [Path]),
    Only(&'static [Path]),
}

impl SubresourceRules {
    pub(crate) const fn writes_all_but(
        name: &'static str,
        prepare: UpdateRule,
        fields: &'static [Path],
    ) -> Self {
        SubresourceRules { name, prepare, counts_generation: false, writes: Writes::AllBut(fields) }
    }

    /// `*` in a path is every item of a list.
    pub(crate) const fn writes_only(
        name: &'static str,
        prepare: UpdateRule,
        fields: &'static [Path],
    ) -> Self {
        SubresourceRules { name, prepare, counts_generation: false, writes: Writes::Only(fields) }
    }

    pub(crate) const fn counts_generation(mut self) -> Self {
        self.counts_generation = true;
        self
    }

    pub(super) fn reset_fields(&self) -> Filter {
        match self.writes {
            Writes::AllBut(fields) => all_but(fields),
            Writes::Only(fields) => Filter::Below(fields.iter().map(|path| steps(path)).collect()),
        }
    }
}

pub(super) fn all_but(fields: &[Path]) -> Filter {
    Filter::Except(FieldSet::of_fields(fields.iter().copied()))
}

fn steps(path: &[&str]) -> Vec<Step> {
    let step = |name: &&str| if *name == EACH { Step::Any } else { Step::field(name) };
    path.iter().map(step).collect()
}
