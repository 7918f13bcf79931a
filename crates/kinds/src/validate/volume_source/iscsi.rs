//! Volumes of iSCSI: a target, and names that follow its standard.

use api::field::ErrorList;

use super::super::at::At;
use super::{lun, texts};

/// Of a pod's volume: an error says what names can begin with.
pub(super) fn of_pod(at: &At<'_, '_>, errors: &mut ErrorList) {
    target(at, "must be valid format starting with iqn, eui, or naa", errors);
}

pub(super) fn of_persistent_volume(at: &At<'_, '_>, errors: &mut ErrorList) {
    target(at, BAD_INITIATOR, errors);
    if at.has("secretRef") && at.field("secretRef").text_of("name").is_empty() {
        at.field("secretRef").field("name").required(errors, "");
    }
}

const BAD_INITIATOR: &str = "must be valid format";

fn target(at: &At<'_, '_>, unknown: &str, errors: &mut ErrorList) {
    texts(at, &["targetPortal", "iqn"], errors);
    let iqn = at.field("iqn");
    if !iqn.text().is_empty() {
        initiator(&iqn, unknown, errors);
    }
    lun(&at.field("lun"), errors);
    let authenticates = at.flag_of("chapAuthDiscovery") || at.flag_of("chapAuthSession");
    if authenticates && !at.has("secretRef") {
        at.field("secretRef").required(errors, "");
    }
    let name = at.field("initiatorName");
    if name.is_set() {
        // Kubernetes: spelled so in errors.
        initiator(&At::new(name.value(), at.path().child("initiatorname")), unknown, errors);
    }
}

/// A name of an initiator or a target. `unknown` is said of one that begins with none of the known prefixes.
fn initiator(name: &At<'_, '_>, unknown: &str, errors: &mut ErrorList) {
    let text = name.text();
    let is_hexadecimal = |rest: &str, length: usize| {
        let mut rest = rest.chars();
        rest.next().is_some() && rest.clone().count() == length && rest.all(|c| c.is_ascii_alphanumeric())
    };
    let is_good = match text.get(..3) {
        Some("iqn") => is_qualified_name(&text[3..]),
        Some("eui") => is_hexadecimal(&text[3..], 16),
        Some("naa") => is_hexadecimal(&text[3..], 32),
        _ => return name.invalid_text(errors, unknown),
    };
    if !is_good {
        name.invalid_text(errors, BAD_INITIATOR);
    }
}

/// What follows `iqn`: a month, a domain and a name of its own, as in `.2001-04.com.example:storage`.
fn is_qualified_name(text: &str) -> bool {
    let Some((month, rest)) = text.strip_prefix('.').and_then(|text| text.split_once('.')) else {
        return false;
    };
    let Some((domain, own)) = rest.split_once(':') else { return false };
    let is_month = |(year, month): (&str, &str)| {
        let digits = |text: &str, length| text.len() == length && text.bytes().all(|it| it.is_ascii_digit());
        digits(year, 4) && digits(month, 2)
    };
    month.split_once('-').is_some_and(is_month)
        && !domain.is_empty()
        && domain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        && !own.is_empty()
        && !own.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_initiators_have_a_format() {
        let sixteen = "0123456789abcdef";
        for (name, expected) in [
            ("iqn.2001-04.com.example:storage.disk2", ""),
            ("iqn.2001-04.com.example", BAD_INITIATOR),
            ("iqn.2001-4.com.example:a", BAD_INITIATOR),
            ("iqn.2001-04.com.example:a b", BAD_INITIATOR),
            (&format!("eui.{sixteen}"), ""),
            ("eui.0123", BAD_INITIATOR),
            (&format!("naa.{sixteen}{sixteen}"), ""),
            ("a/b", "another"),
        ] {
            let (value, mut errors) = (serde_json::json!({ "iqn": name }), ErrorList::new());
            let root = At::new(&value, api::field::Path::ROOT);
            initiator(&root.field("iqn"), "another", &mut errors);
            let told: Vec<_> = errors.iter().map(|error| error.detail.clone()).collect();
            assert_eq!(told.join(""), expected, "{name}");
        }
    }
}
