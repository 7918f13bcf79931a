//! Names that carry their domain with them, and paths that must not leave their directory.

use super::{Format, invalid};
use crate::field::{Error, ErrorList, Path};

/// `a.example.com`: at least three segments.
pub fn fully_qualified_name(path: &Path<'_>, name: &str) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    if let problems @ [_, ..] = Format::Dns1123Subdomain.problems(name).as_slice() {
        return Error::invalid(path, name, problems.join(",")).into();
    }
    if name.split('.').count() < 3 {
        let problem = "should be a domain with at least three segments separated by dots";
        return Error::invalid(path, name, problem).into();
    }
    ErrorList::new()
}

/// `example.com` or `example.com.`: at least two segments, each of them a label.
pub fn fully_qualified_domain_name(path: &Path<'_>, name: &str) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if let problems @ [_, ..] = Format::Dns1123Subdomain.problems(name).as_slice() {
        return Error::invalid(path, name, problems.join(",")).into();
    }
    if name.split('.').count() < 2 {
        let problem = "should be a domain with at least two segments separated by dots";
        return Error::invalid(path, name, problem).into();
    }
    let bad_label = name.split('.').find_map(|label| match Format::Dns1123Label.problems(label) {
        problems if problems.is_empty() => None,
        problems => Some(Error::invalid(path, label, problems.join(","))),
    });
    bad_label.into_iter().collect()
}

/// `acme.io/foo`, whose path may have any shape that a URL allows.
pub fn domain_prefixed_path(path: &Path<'_>, text: &str) -> ErrorList {
    if text.is_empty() {
        return Error::required(path, "").into();
    }
    let (host, rest) = match text.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => {
            return Error::invalid(path, text, r#"must be a domain-prefixed path (such as "acme.io/foo")"#)
                .into();
        }
    };
    let mut errors = Format::Dns1123Subdomain.check(path, host);
    if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        let problem = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(Error::invalid(path, rest, problem));
    }
    errors
}

/// `acme.io/foo`, whose last part is a label's name.
pub fn domain_prefixed_key(path: &Path<'_>, key: &str) -> ErrorList {
    if key.is_empty() {
        return Error::required(path, "").into();
    }
    let problems = Format::QualifiedName.problems(key);
    if problems.is_empty() && !key.contains('/') {
        return Error::invalid(path, key, r#"must be a domain-prefixed key (such as "acme.io/foo")"#).into();
    }
    invalid(path, key, problems)
}

/// A path that stays below the directory it is applied to.
pub fn relative_path(path: &Path<'_>, text: &str) -> ErrorList {
    let absolute = text.starts_with('/').then_some("must be a relative path");
    let upward = text.split('/').any(|part| part == "..").then_some("must not contain '..'");
    absolute.into_iter().chain(upward).map(|problem| Error::invalid(path, text, problem)).collect()
}
