//! Labels and annotations: maps whose keys, and in part values, are names.

use super::{Format, invalid};
use crate::field::{Error, ErrorList, Path};

/// All keys and values together. Kubernetes stores them with every object, in memory.
pub const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// Kubernetes: an error names the map, not the entry.
pub fn labels<'a>(path: &Path<'_>, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        errors.extend(label_key(path, key));
        errors.extend(Format::LabelValue.check(path, value));
    }
    errors
}

pub fn label_key(path: &Path<'_>, key: &str) -> ErrorList {
    Format::QualifiedName.check(path, key)
}

pub fn annotations<'a>(
    path: &Path<'_>,
    annotations: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut bytes = 0;
    for (key, value) in annotations {
        // Kubernetes: the case of an annotation's key does not matter, not even in its prefix.
        errors.extend(invalid(path, key, Format::QualifiedName.problems(&key.to_lowercase())));
        bytes += key.len() + value.len();
    }
    if bytes > MAX_ANNOTATION_BYTES {
        errors.push(Error::too_long(path, MAX_ANNOTATION_BYTES));
    }
    errors
}
