//! The names of devices and what belongs to them: pools, requests, attributes, UUIDs.

use api::field::{Error, ErrorList, Path};
use api::name::Format;
use serde_json::Value;

use crate::validate::at::At;
use crate::validate::volume_source::csi_driver_name;

const MAX_POOL_NAME: usize = 253;
const MAX_IDENTIFIER: usize = 32;
const NO_REQUEST: &str = "must be the name of a request in the claim or the name of a request and a subrequest \
    separated by '/'";

pub(super) fn pool(name: &At<'_, '_>, errors: &mut ErrorList) {
    if name.text().is_empty() {
        name.required(errors, "");
        return;
    }
    if name.text().len() > MAX_POOL_NAME {
        errors.push(Error::too_long(name.path(), MAX_POOL_NAME));
    }
    for part in name.text().split('/') {
        errors.extend(Format::Dns1123Subdomain.check(name.path(), part));
    }
}

/// The name of a request of the claim, or of an alternative within one.
pub(super) fn request_reference(name: &At<'_, '_>, requests: &At<'_, '_>, errors: &mut ErrorList) {
    let parts: Vec<&str> = name.text().split('/').collect();
    if parts.len() > 2 {
        name.invalid_text(errors, NO_REQUEST);
        return;
    }
    for part in &parts {
        errors.extend(Format::Dns1123Label.check(name.path(), part));
    }
    let is_there =
        requests.items().filter(|it| it.text_of("name") == parts[0]).any(|it| match parts.as_slice() {
            [_, part] => it.field("firstAvailable").items().any(|it| it.text_of("name") == *part),
            _ => true,
        });
    if !is_there {
        name.invalid_text(errors, NO_REQUEST);
    }
}

/// `name` or `domain/name`. Kubernetes: whatever has more slashes passes.
pub(super) fn qualified(path: &Path<'_>, name: &str, errors: &mut ErrorList) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [name] => identifier(path, name, errors),
        [domain, name] => {
            if domain.is_empty() {
                errors.push(Error::invalid(path, "", "the domain must not be empty"));
            } else {
                csi_driver_name(&At::new(&Value::from(*domain), *path), errors);
            }
            if name.is_empty() {
                errors.push(Error::invalid(path, "", "the name must not be empty"));
            } else {
                identifier(path, name, errors);
            }
        }
        _ => {}
    }
}

pub(super) fn fully_qualified(at: &At<'_, '_>, errors: &mut ErrorList) {
    let mut parts = ErrorList::new();
    qualified(at.path(), at.text(), &mut parts);
    // Kubernetes: the domain and the name are plain strings; the whole has a type of its own.
    parts.show_values(|error| Some(error.value.clone().of_plain_type()));
    errors.extend(parts);
    if !at.text().contains('/') {
        at.invalid_text(errors, "a fully qualified name must be a domain and a name separated by a slash");
    }
}

fn identifier(path: &Path<'_>, name: &str, errors: &mut ErrorList) {
    if name.len() > MAX_IDENTIFIER {
        errors.push(Error::too_long(path, MAX_IDENTIFIER));
    }
    errors.extend(Format::CIdentifier.check(path, name));
}

/// A UUID in lower case with hyphens.
pub(super) fn uuid(at: &At<'_, '_>, errors: &mut ErrorList) {
    const NORMAL: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with \
        lowercase hexadecimal characters";
    match uuid_problem(at.text()) {
        Some(problem) => at.invalid_text(errors, format!("error validating uid: {problem}")),
        None if at.text().len() != 36 || at.text().bytes().any(|it| it.is_ascii_uppercase()) => {
            at.invalid_text(errors, NORMAL);
        }
        None => {}
    }
}

/// Kubernetes: the library that reads UUIDs takes four forms, told apart by their length.
fn uuid_problem(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let hyphenated = match bytes.len() {
        36 => bytes,
        45 => {
            let (prefix, rest) = bytes.split_at(9);
            if !prefix.eq_ignore_ascii_case(b"urn:uuid:") {
                return Some(format!("invalid urn prefix: {}", api::go::quote(&text[..9])));
            }
            rest
        }
        38 => {
            if bytes[0] != b'{' || bytes[37] != b'}' {
                return Some("invalid bracketed UUID format".to_owned());
            }
            &bytes[1..37]
        }
        32 => {
            let is_hex = bytes.iter().all(u8::is_ascii_hexdigit);
            return (!is_hex).then(|| "invalid UUID format".to_owned());
        }
        length => return Some(format!("invalid UUID length: {length}")),
    };
    let is_right = hyphenated.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (!is_right).then(|| "invalid UUID format".to_owned())
}
