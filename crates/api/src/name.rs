//! A text in, what keeps it from being a name out: the formats that Kubernetes knows, with its words.

mod address;
mod format;
mod labels;
mod qualified;
#[cfg(test)]
mod tests;

use crate::field::{Error, ErrorList, Path};

pub use address::{
    cidr, cidr_warnings, interface_address, ip, ip_warning, legacy_cidr, legacy_ip, parse_ip_leniently,
};
pub use format::Format;
pub use labels::{MAX_ANNOTATION_BYTES, annotations, label_key, labels};
pub use qualified::{
    domain_prefixed_key, domain_prefixed_path, fully_qualified_domain_name, fully_qualified_name,
    relative_path,
};

/// How the objects of a kind may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameRule {
    DnsSubdomain,
    DnsLabel,
    Dns1035Label,
    /// Anything that fits between two slashes of a URL.
    PathSegment,
}

impl NameRule {
    pub fn problems(self, name: &str) -> Vec<String> {
        match self {
            NameRule::DnsSubdomain => Format::Dns1123Subdomain.problems(name),
            NameRule::DnsLabel => Format::Dns1123Label.problems(name),
            NameRule::Dns1035Label => Format::Dns1035Label.problems(name),
            NameRule::PathSegment => Format::PathSegment.problems(name),
        }
    }

    /// The same for a `generateName`, to which something will be appended: a dash may end it.
    pub fn prefix_problems(self, prefix: &str) -> Vec<String> {
        match self {
            NameRule::PathSegment => format::path_segment_prefix_problems(prefix),
            rule => rule.problems(&mask_trailing_dash(prefix)),
        }
    }
}

/// Kubernetes: the dash goes, and so does the character before it.
fn mask_trailing_dash(prefix: &str) -> String {
    let mut rest = prefix.strip_suffix('-').unwrap_or_default().chars();
    match rest.next_back() {
        Some(c) if c.is_ascii() => format!("{}a", rest.as_str()),
        _ => prefix.to_owned(),
    }
}

/// A port that something can listen on.
pub fn port_number_problems(port: i64) -> Vec<String> {
    range_problems(port, 1, 65535)
}

/// A Unix user or group.
pub fn id_problems(id: i64) -> Vec<String> {
    range_problems(id, 0, i64::from(i32::MAX))
}

pub fn range_problems(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) {
        return Vec::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// One error for each problem.
fn invalid(path: &Path<'_>, value: &str, problems: Vec<String>) -> ErrorList {
    problems.into_iter().map(|problem| Error::invalid(path, value, problem)).collect()
}
