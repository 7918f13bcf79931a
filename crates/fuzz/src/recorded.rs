//! One object of every built-in kind, as kube-apiserver wrote it in JSON and in protobuf: the basis of most
//! seeds.

use base64::{Engine, engine::general_purpose::STANDARD};
use schema::types::TypeId;
use serde_json::Value;
use std::sync::LazyLock;

static TEXT: &str = include_str!("../../kinds/tests/data/recorded.txt");

/// Separates the parts of an input: a byte that text cannot contain.
pub(crate) const DIVIDER: u8 = 0xfe;

#[derive(Debug)]
pub(crate) struct Recorded {
    /// The byte that [`Kind::chosen`] maps to this kind.
    pub(crate) choice: u8,
    pub(crate) json: &'static str,
    /// The protobuf message; empty where the kind has none.
    pub(crate) message: Vec<u8>,
}

pub(crate) fn recorded() -> &'static [Recorded] {
    static ALL: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
        let mut lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        let mut all = Vec::new();
        while let (Some(head), Some(json), Some(body)) = (lines.next(), lines.next(), lines.next()) {
            let head = head.trim_start_matches(['@', '-']).trim_start();
            let at = kinds().iter().position(|kind| kind.head() == head).unwrap();
            let body = if body == "-" { Vec::new() } else { STANDARD.decode(body).unwrap() };
            let message = match schema::proto::Envelope::open(&body) {
                Ok(envelope) => envelope.raw.into_owned(),
                Err(_) => Vec::new(),
            };
            all.push(Recorded { choice: u8::try_from(at).unwrap(), json, message });
        }
        all
    });
    &ALL
}

/// A built-in kind that is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) of: TypeId,
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
}

impl Kind {
    /// The kind that the first byte of an input chooses, and the rest of the input.
    pub(crate) fn chosen(input: &[u8]) -> Option<(&'static Kind, &[u8])> {
        let (first, rest) = input.split_first()?;
        Some((kinds().get(usize::from(*first) % kinds().len())?, rest))
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    fn head(&self) -> String {
        format!("{} {} {}", self.group, self.version, self.kind).trim_start().to_owned()
    }

    /// Reads an object of the kind in its normalized form, if it is one.
    pub(crate) fn normal(&self, json: &[u8]) -> Option<Value> {
        let ignore = schema::decode::FieldValidation::Ignore;
        let mut value = schema::decode::decode(kinds::types(), self.of, json, ignore).ok()?.value;
        value["apiVersion"] = self.api_version().into();
        value["kind"] = self.kind.into();
        schema::encode::normalize(kinds::types(), self.of, &mut value);
        Some(value)
    }
}

/// Every kind, in the order of the table of types.
fn kinds() -> &'static [Kind] {
    static ALL: LazyLock<Vec<Kind>> = LazyLock::new(|| {
        let all = kinds::types().iter();
        let all = all.filter_map(|(of, shape)| Some((of, shape.kind.as_deref()?)));
        all.map(|(of, kind)| Kind {
            of,
            group: leak(&kind.group),
            version: leak(&kind.version),
            kind: leak(&kind.kind),
        })
        .collect()
    });
    &ALL
}

/// Names of built-in kinds live as long as the program.
fn leak(name: &schema::types::Name) -> &'static str {
    match name {
        std::borrow::Cow::Borrowed(name) => name,
        std::borrow::Cow::Owned(name) => name.clone().leak(),
    }
}

/// The choice of a kind, then parts with dividers between them.
pub(crate) fn seed(choice: u8, parts: &[&[u8]]) -> Vec<u8> {
    [&[choice], parts.join(&DIVIDER).as_slice()].concat()
}

/// The bytes before and after the first divider.
pub(crate) fn divide(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = input.iter().position(|byte| *byte == DIVIDER)?;
    Some((&input[..at], &input[at + 1..]))
}
