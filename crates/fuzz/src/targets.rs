//! The targets, in the order in which a request passes the code that they test.

mod access;
mod apply;
mod cel;
mod continue_token;
mod control_plane;
mod field_selector;
mod field_set;
mod json;
mod json_patch;
mod label_selector;
mod matching;
mod merge_patch;
mod protobuf;
mod quantity;
mod requests;
mod strategic_patch;
mod structural;
mod time;
mod token;
mod token_file;
mod url;
mod yaml;

use crate::Target;

pub const TARGETS: &[Target] = &[
    url::TARGET,
    token::TARGET,
    token_file::TARGET,
    access::TARGET,
    matching::TARGET,
    requests::TARGET,
    continue_token::TARGET,
    label_selector::TARGET,
    field_selector::TARGET,
    quantity::TARGET,
    time::TARGET,
    json::TARGET,
    yaml::TARGET,
    protobuf::TARGET,
    json_patch::TARGET,
    merge_patch::TARGET,
    strategic_patch::TARGET,
    apply::TARGET,
    field_set::TARGET,
    structural::TARGET,
    cel::TARGET,
];

/// Seeds that are texts.
fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Every byte percent-encoded.
fn percent(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
}
