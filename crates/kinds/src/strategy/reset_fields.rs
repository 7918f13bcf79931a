//! Which fields a write to a resource or subresource leaves as they are: the writer does not come to own them.

use schema::field_set::Filter;

use super::subresource::{SubresourceRules, all_but};
use super::{Path, Status, StatusMetadata, Strategy};

const SPEC: &[Path] = &[&["spec"]];
const SPEC_AND_METADATA: &[Path] = &[&["metadata"], &["spec"]];
const STATUS: &[Path] = &[&["status"]];

impl Strategy {
    /// The same for every version of the resource. The empty name is the resource itself.
    #[must_use]
    pub fn reset_fields(&self, subresource: &str) -> Filter {
        match subresource {
            "" => match (self.own_reset, self.status) {
                (Some(fields), _) => all_but(fields),
                (None, Status::Plain) => Filter::All,
                (None, Status::Apart | Status::ApartOnceCreated) => all_but(STATUS),
            },
            "status" => match (self.status_reset, self.status_metadata) {
                (Some(fields), _) => all_but(fields),
                (None, StatusMetadata::Anything | StatusMetadata::AllBut(_)) => all_but(SPEC),
                (None, StatusMetadata::Little | StatusMetadata::Nothing) => all_but(SPEC_AND_METADATA),
            },
            name => self.subresource(name).map_or(Filter::All, SubresourceRules::reset_fields),
        }
    }
}
