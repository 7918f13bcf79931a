//! Where in an object something is wrong, and how: field paths and field errors, in Kubernetes' words.

mod bad_value;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, fmt};

use crate::go;

pub use bad_value::BadValue;

/// The way from the root of an object to a field. It lives on the stack: each step borrows the one before,
/// so that descending costs nothing until an error prints it.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {}", self.body())]
pub struct Error {
    pub error_type: ErrorType,
    pub field: String,
    pub value: BadValue,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorType {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooShort,
    TooMany,
    TooFew,
    Internal,
    TypeInvalid,
}

/// Everything wrong with an object, in the order found; of too much, the first. It prints as Kubernetes' aggregate does.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ErrorList {
    errors: Vec<Error>,
    /// The length of their texts, about.
    bytes: usize,
}

/// Texts of one list. A list of thousands of entries that are all wrong, each error showing the whole list, would
/// otherwise be as long as the square of what was sent; no human reads so much.
const MAX_BYTES: usize = 1 << 20;

impl<'a> Path<'a> {
    /// The object itself. Alone it prints as `<nil>`, as the real server's does.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub const fn new(name: &'a str) -> Self {
        Path { parent: None, step: Step::Child(name) }
    }

    /// A field. A dotted name stands for several steps: `metadata.labels`.
    pub const fn child(&'a self, name: &'a str) -> Self {
        Path { parent: Some(self), step: Step::Child(name) }
    }

    pub const fn index(&'a self, index: usize) -> Self {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// An entry of a map.
    pub const fn key(&'a self, key: &'a str) -> Self {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    pub const fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.write(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            // Kubernetes: a field without a name prints as an empty subscript.
            Step::Child("") => f.write_str("[]"),
            Step::Child(name) if self.parent.is_none_or(Path::is_root) => f.write_str(name),
            Step::Child(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str("<nil>") } else { self.write(f) }
    }
}

impl Error {
    /// The message without the field.
    pub fn body(&self) -> String {
        let mut body = String::from(self.error_type.title());
        let value = self.value.text().filter(|_| self.error_type.shows_value());
        for part in value.as_deref().into_iter().chain(Some(self.detail.as_str()).filter(|it| !it.is_empty()))
        {
            body.push_str(": ");
            body.push_str(part);
        }
        body
    }

    fn new(error_type: ErrorType, path: &Path<'_>, value: BadValue, detail: impl Into<String>) -> Self {
        Error { error_type, field: path.to_string(), value, detail: detail.into() }
    }

    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, BadValue::OMITTED, detail)
    }

    pub fn invalid(path: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, value.into(), detail)
    }

    pub fn type_invalid(path: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, path, value.into(), detail)
    }

    /// `supported` is listed in the order given.
    pub fn not_supported<T: AsRef<str>>(
        path: &Path<'_>,
        value: impl Into<BadValue>,
        supported: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut detail = go::quote_all(supported);
        if !detail.is_empty() {
            detail.insert_str(0, "supported values: ");
        }
        Self::new(ErrorType::NotSupported, path, value.into(), detail)
    }

    pub fn duplicate(path: &Path<'_>, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::Duplicate, path, value.into(), "")
    }

    pub fn not_found(path: &Path<'_>, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::NotFound, path, value.into(), "")
    }

    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, BadValue::OMITTED, detail)
    }

    /// Longer than so many bytes.
    pub fn too_long(path: &Path<'_>, max: usize) -> Self {
        let detail = format!("may not be more than {}", count(max, "byte"));
        Self::new(ErrorType::TooLong, path, BadValue::OMITTED, detail)
    }

    pub fn too_long_characters(path: &Path<'_>, max: usize) -> Self {
        let detail = format!("may not be more than {}", count(max, "character"));
        Self::new(ErrorType::TooLong, path, BadValue::OMITTED, detail)
    }

    pub fn too_short(path: &Path<'_>, min: usize) -> Self {
        let detail = format!("must be at least {}", count(min, "character"));
        Self::new(ErrorType::TooShort, path, BadValue::OMITTED, detail)
    }

    pub fn too_many(path: &Path<'_>, actual: impl Into<BadValue>, max: usize) -> Self {
        let detail = format!("must have at most {}", count(max, "item"));
        Self::new(ErrorType::TooMany, path, actual.into(), detail)
    }

    pub fn too_few(path: &Path<'_>, actual: impl Into<BadValue>, min: usize) -> Self {
        let detail = format!("must have at least {}", count(min, "item"));
        Self::new(ErrorType::TooFew, path, actual.into(), detail)
    }

    /// Nothing that the user sent is to blame.
    pub fn internal(path: &Path<'_>, cause: impl fmt::Display) -> Self {
        Self::new(ErrorType::Internal, path, BadValue::OMITTED, cause.to_string())
    }
}

impl ErrorType {
    /// The reason of a status cause: `FieldValueInvalid`.
    pub const fn reason(self) -> &'static str {
        match self {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooShort => "FieldValueTooShort",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::TooFew => "FieldValueTooFew",
            ErrorType::Internal => "InternalError",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The first words of the message: `Invalid value`.
    pub const fn title(self) -> &'static str {
        match self {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooShort => "Too short",
            ErrorType::TooMany => "Too many",
            ErrorType::TooFew => "Too few",
            ErrorType::Internal => "Internal error",
        }
    }

    const fn shows_value(self) -> bool {
        use ErrorType::{Forbidden, Internal, Required, TooLong, TooShort};
        !matches!(self, Required | Forbidden | TooLong | TooShort | Internal)
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

impl ErrorList {
    pub const fn new() -> Self {
        ErrorList { errors: Vec::new(), bytes: 0 }
    }

    pub fn push(&mut self, error: Error) {
        if !self.is_full() {
            self.bytes += error.field.len() + error.value.len() + error.detail.len();
            self.errors.push(error);
        }
    }

    /// Whether the list has reached its size limit: further errors are dropped, so their texts need not be built.
    pub fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// Replaces the value that each error shows by what `shown` makes of the error.
    pub fn show_values(&mut self, shown: impl Fn(&Error) -> Option<BadValue>) {
        for error in &mut self.errors {
            if let Some(value) = shown(error) {
                error.value = value;
            }
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.errors.iter()
    }

    /// `Err` with the list unless it is empty.
    pub fn into_result(self) -> Result<(), ErrorList> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// `a` alone or `[a, b]`, each text once.
impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.iter().map(Error::to_string).collect();
        let mut said = HashSet::with_capacity(texts.len());
        let different: Vec<&str> =
            texts.iter().map(String::as_str).filter(|text| said.insert(*text)).collect();
        match different.as_slice() {
            [only] => f.write_str(only),
            [] => Ok(()),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for ErrorList {}

impl Extend<Error> for ErrorList {
    fn extend<I: IntoIterator<Item = Error>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl FromIterator<Error> for ErrorList {
    fn from_iter<I: IntoIterator<Item = Error>>(errors: I) -> Self {
        let mut list = ErrorList::new();
        list.extend(errors);
        list
    }
}

impl From<Error> for ErrorList {
    fn from(error: Error) -> Self {
        ErrorList::from_iter([error])
    }
}

impl IntoIterator for ErrorList {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
