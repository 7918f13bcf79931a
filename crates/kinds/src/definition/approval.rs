//! Groups of the Kubernetes community are protected: definitions in them say who approved them.

use api::go;
use api::object;
use serde_json::Value;

pub(crate) const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    Missing,
    Invalid,
    /// It begins with `unapproved`.
    Bypassed,
    /// It is the address of the approval.
    Approved,
}

pub(crate) fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].into_iter().any(|community| {
        group.strip_suffix(community).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    })
}

/// What the annotation says, and the words for it.
pub(crate) fn approval(definition: &Value) -> (Approval, String) {
    let annotation = object::annotation(definition, ANNOTATION).unwrap_or_default();
    let must = format!("protected groups must have approval annotation {}", go::quote(ANNOTATION));
    if annotation.is_empty() {
        (Approval::Missing, format!("{must}, {SEE}"))
    } else if annotation.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {}", go::quote(annotation)))
    } else if is_address(annotation) {
        (Approval::Approved, format!("approved in {annotation}"))
    } else {
        let either = "with either a URL or a reason starting with \"unapproved\"";
        (Approval::Invalid, format!("{must} {either}, {SEE}"))
    }
}

/// A URL with a scheme and a host.
fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let mut letters = scheme.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !host.is_empty()
        && !host.contains([' ', '<', '>', '"', '^', '`', '{', '|', '}', '\\', '#'])
        && !text.contains(|c: char| c.is_ascii_control())
        && escapes_are_whole(rest)
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|it| it.len() >= 2 && it.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}
