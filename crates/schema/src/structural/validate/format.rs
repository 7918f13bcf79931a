//! `format`: whether a text matches a named format.
//!
//! Kubernetes: each format is what kube-apiserver's libraries accept.

use crate::structural::shape::ValueType;

mod code;
mod email;
mod moment;
mod network;
mod uri;

type Matches = fn(&str) -> bool;

/// Names are compared without their dashes: `date-time` is `datetime`.
const TEXT_FORMATS: [(&str, Matches); 26] = [
    ("bsonobjectid", code::is_object_id),
    ("byte", code::is_base64),
    ("cidr", network::is_cidr),
    ("creditcard", code::is_credit_card),
    ("date", api::time::is_date),
    ("datetime", api::time::is_date_time),
    ("duration", moment::is_duration),
    ("email", email::is_email),
    ("hexcolor", code::is_hex_color),
    ("hostname", network::is_host_name),
    ("ipv4", network::is_ipv4),
    ("ipv6", network::is_ipv6),
    ("isbn", |text| code::is_isbn10(text) || code::is_isbn13(text)),
    ("isbn10", code::is_isbn10),
    ("isbn13", code::is_isbn13),
    ("k8slongname", network::is_long_name),
    ("k8sshortname", network::is_short_name),
    ("mac", network::is_mac),
    ("password", |_| true),
    ("rgbcolor", code::is_rgb_color),
    ("ssn", code::is_ssn),
    ("uri", uri::is_request_uri),
    ("uuid", |text| code::is_uuid(text, None)),
    ("uuid3", |text| code::is_uuid(text, Some('3'))),
    ("uuid4", |text| code::is_uuid(text, Some('4'))),
    ("uuid5", |text| code::is_uuid(text, Some('5'))),
];

/// Whether a format applies to a type. Others are ignored.
pub(in crate::structural) fn applies(kind: ValueType, name: &str) -> bool {
    match kind {
        ValueType::Any | ValueType::String | ValueType::IntOrString => is_text_format(name),
        ValueType::Integer => matches!(name, "int32" | "int64"),
        ValueType::Number => matches!(name, "float" | "double"),
        ValueType::Object | ValueType::Array | ValueType::Boolean => false,
    }
}

/// As [`applies`], by the name of the type; `false` for an unknown type.
#[must_use]
pub fn is_checked(type_name: &str, name: &str) -> bool {
    let kind = ValueType::named(type_name);
    (kind != ValueType::Any || type_name.is_empty()) && applies(kind, name)
}

pub(super) fn is_text_format(name: &str) -> bool {
    find(name).is_some()
}

/// Whether a text matches a format. Unknown formats match every text.
pub(super) fn matches(name: &str, text: &str) -> bool {
    find(name).is_none_or(|matches| matches(text))
}

fn find(name: &str) -> Option<Matches> {
    let plain = name.replace('-', "");
    let at = TEXT_FORMATS.binary_search_by(|(known, _)| (*known).cmp(&plain)).ok()?;
    Some(TEXT_FORMATS[at].1)
}

#[cfg(test)]
mod tests;
