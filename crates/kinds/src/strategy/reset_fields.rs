//! Which fields nobody comes to own through a resource, because writing them there has no effect.

use schema::field_set::{FieldSet, Filter, Step};

use super::{Path, Status, StatusMetadata, Strategy};

const SPEC: &[Path] = &[&["spec"]];
const SPEC_AND_METADATA: &[Path] = &[&["metadata"], &["spec"]];
const STATUS: &[Path] = &[&["status"]];
/// What a resize writes, of each container.
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];

impl Strategy {
    /// The same for every version of the resource. The empty name is the resource itself.
    #[must_use]
    pub fn reset_fields(&self, subresource: &str) -> Filter {
        match subresource {
            "" => match (self.own_reset, self.status) {
                (Some(fields), _) => except(fields),
                (None, Status::Plain) => Filter::All,
                (None, Status::Apart | Status::ApartOnceCreated) => except(STATUS),
            },
            "status" => match (self.status_reset, self.status_metadata) {
                (Some(fields), _) => except(fields),
                (None, StatusMetadata::Anything | StatusMetadata::AllBut(_)) => except(SPEC),
                (None, StatusMetadata::Little | StatusMetadata::Nothing) => except(SPEC_AND_METADATA),
            },
            "finalize" => except(STATUS),
            "approval" => except(&[&["spec"], &["status", "certificate"]]),
            "ephemeralcontainers" => {
                Filter::Below(vec![vec![Step::field("spec"), Step::field("ephemeralContainers")]])
            }
            "resize" => resized(),
            _ => Filter::All,
        }
    }
}

fn except(fields: &[Path]) -> Filter {
    Filter::Except(FieldSet::of_fields(fields.iter().copied()))
}

fn resized() -> Filter {
    let lists = ["containers", "initContainers"].into_iter();
    let paths = lists.flat_map(|list| {
        RESIZED.map(|field| vec![Step::field("spec"), Step::field(list), Step::Any, Step::field(field)])
    });
    Filter::Below(paths.collect())
}
