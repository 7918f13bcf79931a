//! The built-in kinds of Kubernetes v1.36, as data: their types, their resources and the objects of a new cluster.
//!
//! | call | what it answers |
//! |---|---|
//! | [`types`] | what does an object look like? |
//! | [`mod@resources`] | under which paths is it served, with which verbs, columns and storage? |
//! | [`mod@bootstrap`] | which objects does a new cluster hold? |
//! | [`mod@defaults`] | what does an object say without being told? |
//! | [`mod@strategy`] | what does a write set, keep and drop? |
//! | [`mod@validate`] | what is wrong with an object, and what should its writer be told? |
//! | [`mod@cells`] | what does `kubectl get` show of it? |
//! | [`mod@selectable`] | which of its fields can be selected by? |
//! | [`mod@convert`] | what does it look like in another version? |
//! | [`mod@older`] | which kinds are known in versions that are not served? |
//! | [`mod@policy`] | what may the expressions of policies and webhooks say? |
//! | [`mod@descriptions`] | what does `kubectl explain` say of types and fields? |
//! | [`mod@definition`] | what does a CustomResourceDefinition add to all this? |
//!
//! What code says about a kind lies in one file, `built_in/<group>/<kind>.rs`: strategy, defaults, validation, warnings,
//! columns with their cells, selectable fields and conversions. The modules above are the engines that read it, and
//! what several kinds share. To add a kind, write that file and add a line to `built_in/list.rs`.
//!
//! The facts lie in `data/`, where `carry.py` writes them from recordings of the real server. They are read once,
//! on first use; the text itself stays in the binary, so names are slices of it. `data/descriptions/` is written
//! by hand.

pub mod bootstrap;
mod built_in;
pub mod cells;
pub mod convert;
pub mod defaults;
pub mod definition;
pub mod descriptions;
pub mod older;
pub mod policy;
pub mod resources;
pub mod selectable;
pub mod strategy;
mod type_table;
pub mod validate;

pub use bootstrap::bootstrap;
pub use resources::resources;
pub use type_table::types;

/// `-` in the data is the core group, or nothing.
fn or_empty(word: &str) -> &str {
    if word == "-" { "" } else { word }
}
