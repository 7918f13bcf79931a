//! The formats of plain texts, as data: a limit, a pattern, and the words for a text that breaks them.

use super::invalid;
use crate::field::{ErrorList, Path};
use crate::go;

/// A shape that a text may be required to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1123SubdomainWithUnderscore,
    Dns1035Label,
    WildcardDns1123Subdomain,
    /// A label key: a name with an optional DNS prefix, `example.com/name`.
    QualifiedName,
    LabelValue,
    CIdentifier,
    /// An IANA service name.
    PortName,
    Percent,
    HttpHeaderName,
    EnvVarName,
    /// What 1.36 asks of an environment variable: printable ASCII but for `=`.
    RelaxedEnvVarName,
    ConfigMapKey,
    ConditionReason,
    DecimalInteger,
    /// What fits between two slashes of a URL.
    PathSegment,
}

/// A regular expression in Kubernetes' words and as our own code.
struct Pattern {
    limit: Option<Limit>,
    matches: fn(&str) -> bool,
    rule: &'static str,
    regex: &'static str,
    examples: &'static [&'static str],
}

/// Kubernetes counts bytes and mostly calls them characters.
#[derive(Clone, Copy)]
enum Limit {
    Characters(usize),
    Bytes(usize),
}

impl Format {
    /// Empty if the text has the format.
    pub fn problems(self, text: &str) -> Vec<String> {
        match self {
            Format::Dns1123Label if text.contains('.') && dns1123_subdomain(text) => {
                let dots = "must not contain dots".to_owned();
                DNS1123_LABEL.excess(text).into_iter().chain([dots]).collect()
            }
            Format::Dns1123Label => DNS1123_LABEL.problems(text),
            Format::Dns1123Subdomain => DNS1123_SUBDOMAIN.problems(text),
            Format::Dns1123SubdomainWithUnderscore => UNDERSCORE_SUBDOMAIN.problems(text),
            Format::Dns1035Label => DNS1035_LABEL.problems(text),
            Format::WildcardDns1123Subdomain => WILDCARD_SUBDOMAIN.problems(text),
            Format::QualifiedName => qualified_name_problems(text),
            Format::LabelValue => LABEL_VALUE.problems(text),
            Format::CIdentifier => C_IDENTIFIER.problems(text),
            Format::PortName => port_name_problems(text),
            Format::Percent => PERCENT.problems(text),
            Format::HttpHeaderName => HTTP_HEADER_NAME.problems(text),
            Format::EnvVarName => [ENV_VAR_NAME.problems(text), upward_problems(text)].concat(),
            Format::RelaxedEnvVarName => relaxed_env_var_problems(text),
            Format::ConfigMapKey => [CONFIG_MAP_KEY.problems(text), upward_problems(text)].concat(),
            Format::ConditionReason => CONDITION_REASON.problems(text),
            Format::DecimalInteger => decimal_integer_problems(text),
            Format::PathSegment => path_segment_problems(text),
        }
    }

    pub fn fits(self, text: &str) -> bool {
        self.problems(text).is_empty()
    }

    /// One error for each problem.
    pub fn check(self, path: &Path<'_>, text: &str) -> ErrorList {
        invalid(path, text, self.problems(text))
    }
}

impl Pattern {
    fn problems(&self, text: &str) -> Vec<String> {
        let mismatch = (!(self.matches)(text)).then(|| self.mismatch());
        self.excess(text).into_iter().chain(mismatch).collect()
    }

    fn excess(&self, text: &str) -> Option<String> {
        self.limit.and_then(|limit| limit.excess(text))
    }

    fn mismatch(&self) -> String {
        let examples = self.examples.iter().map(|example| format!("'{example}', ")).collect::<Vec<_>>();
        let lead = if examples.is_empty() { "" } else { "e.g. " };
        format!(
            "{} ({lead}{}regex used for validation is '{}')",
            self.rule,
            examples.join(" or "),
            self.regex
        )
    }
}

impl Limit {
    fn excess(self, text: &str) -> Option<String> {
        let (max, unit) = match self {
            Limit::Characters(max) => (max, "characters"),
            Limit::Bytes(max) => (max, "bytes"),
        };
        (text.len() > max).then(|| format!("must be no more than {max} {unit}"))
    }
}

const DNS1123_LABEL: Pattern = Pattern {
    limit: Some(Limit::Characters(63)),
    matches: dns1123_label,
    rule: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
           and end with an alphanumeric character",
    regex: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "123-abc"],
};

const DNS1123_SUBDOMAIN: Pattern = Pattern {
    limit: Some(Limit::Characters(253)),
    matches: dns1123_subdomain,
    rule: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
           must start and end with an alphanumeric character",
    regex: r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    examples: &["example.com"],
};

/// The prefix of a label key: Kubernetes checks it with a newer copy of the same code, which counts bytes.
const LABEL_PREFIX: Pattern = Pattern { limit: Some(Limit::Bytes(253)), ..DNS1123_SUBDOMAIN };

const UNDERSCORE_SUBDOMAIN: Pattern = Pattern {
    limit: Some(Limit::Characters(253)),
    matches: |text| {
        let is_inner = |byte| is_lower_alphanumeric(byte) || matches!(byte, b'-' | b'_');
        text.split('.').all(|label| {
            let label = label.strip_prefix('_').unwrap_or(label);
            framed(label, is_lower_alphanumeric, is_inner, is_lower_alphanumeric)
        })
    },
    rule: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
           and must start and end with an alphanumeric character",
    regex: r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
    examples: &["example.com"],
};

const DNS1035_LABEL: Pattern = Pattern {
    limit: Some(Limit::Characters(63)),
    matches: |text| framed(text, |byte| byte.is_ascii_lowercase(), is_dns, is_lower_alphanumeric),
    rule: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
           character, and end with an alphanumeric character",
    regex: "[a-z]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "abc-123"],
};

const WILDCARD_SUBDOMAIN: Pattern = Pattern {
    limit: Some(Limit::Characters(253)),
    matches: |text| text.strip_prefix("*.").is_some_and(dns1123_subdomain),
    rule: "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
           consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    regex: r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    examples: &["*.example.com"],
};

const LABEL_NAME: Pattern = Pattern {
    limit: Some(Limit::Bytes(63)),
    matches: label_name,
    rule: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
           alphanumeric character",
    regex: "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    examples: &["MyName", "my.name", "123-abc"],
};

const LABEL_VALUE: Pattern = Pattern {
    limit: Some(Limit::Bytes(63)),
    matches: |text| text.is_empty() || label_name(text),
    rule: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
           start and end with an alphanumeric character",
    regex: "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    examples: &["MyValue", "my_value", "12345"],
};

const C_IDENTIFIER: Pattern = Pattern {
    limit: None,
    matches: |text| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        framed(text, |byte| byte.is_ascii_alphabetic() || byte == b'_', is_inner, is_inner)
    },
    rule: "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
           characters or '_'",
    regex: "[A-Za-z_][A-Za-z0-9_]*",
    examples: &["my_name", "MY_NAME", "MyName"],
};

const PERCENT: Pattern = Pattern {
    limit: None,
    matches: |text| text.strip_suffix('%').is_some_and(|number| only(number, |byte| byte.is_ascii_digit())),
    rule: "a valid percent string must be a numeric string followed by an ending '%'",
    regex: "[0-9]+%",
    examples: &["1%", "93%"],
};

const HTTP_HEADER_NAME: Pattern = Pattern {
    limit: None,
    matches: |text| only(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-'),
    rule: "a valid HTTP header must consist of alphanumeric characters or '-'",
    regex: "[-A-Za-z0-9]+",
    examples: &["X-Header-Name"],
};

const ENV_VAR_NAME: Pattern = Pattern {
    limit: None,
    matches: |text| framed(text, |byte| is_key(byte) && !byte.is_ascii_digit(), is_key, is_key),
    rule: "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and \
           must not start with a digit",
    regex: "[-._a-zA-Z][-._a-zA-Z0-9]*",
    examples: &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
};

const CONFIG_MAP_KEY: Pattern = Pattern {
    limit: Some(Limit::Characters(253)),
    matches: |text| only(text, is_key),
    rule: "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    regex: "[-._a-zA-Z0-9]+",
    examples: &["key.name", "KEY_NAME", "key-name"],
};

const CONDITION_REASON: Pattern = Pattern {
    limit: None,
    matches: |text| {
        let is_last = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
        framed(text, |byte| byte.is_ascii_alphabetic(), is_inner, is_last)
    },
    rule: "a condition reason must start with alphabetic character, optionally followed by a string of \
           alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    regex: "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
    examples: &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
};

fn dns1123_label(text: &str) -> bool {
    framed(text, is_lower_alphanumeric, is_dns, is_lower_alphanumeric)
}

fn dns1123_subdomain(text: &str) -> bool {
    text.split('.').all(dns1123_label)
}

fn label_name(text: &str) -> bool {
    framed(text, |byte| byte.is_ascii_alphanumeric(), is_key, |byte| byte.is_ascii_alphanumeric())
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_dns(byte: u8) -> bool {
    is_lower_alphanumeric(byte) || byte == b'-'
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// `first inner* last`, or one character that is both first and last.
fn framed(text: &str, first: fn(u8) -> bool, inner: fn(u8) -> bool, last: fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [start, .., end] if !first(*start) || !last(*end) => false,
        [start, between @ .., _] => first(*start) && between.iter().all(|byte| inner(*byte)),
        [only] => first(*only) && last(*only),
    }
}

/// At least one character, and all of them such.
fn only(text: &str, such: fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(such)
}

fn qualified_name_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let mismatch = LABEL_NAME.mismatch();
            return vec![format!(
                "a valid label key {mismatch} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            problems
                .extend(LABEL_PREFIX.problems(prefix).iter().map(|problem| format!("prefix part {problem}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(LABEL_NAME.problems(name).iter().map(|problem| format!("name part {problem}")));
    problems
}

fn port_name_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::from_iter(Limit::Characters(15).excess(text));
    for (broken, problem) in [
        (!only(text, is_dns), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (!text.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (text.starts_with('-') || text.ends_with('-'), "must not begin or end with a hyphen"),
    ] {
        if broken {
            problems.push(problem.to_owned());
        }
    }
    problems
}

fn relaxed_env_var_problems(text: &str) -> Vec<String> {
    let problem = match text {
        "" => "environment variable name must be non-empty",
        text if text.chars().all(|c| c.is_ascii() && go::is_print(c) && c != '=') => return Vec::new(),
        _ => {
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        }
    };
    vec![problem.to_owned()]
}

/// A key becomes a file name, which must not lead upwards.
fn upward_problems(text: &str) -> Vec<String> {
    let problem = match text {
        "." => "must not be '.'",
        ".." => "must not be '..'",
        text if text.starts_with("..") => "must not start with '..'",
        _ => return Vec::new(),
    };
    vec![problem.to_owned()]
}

fn decimal_integer_problems(text: &str) -> Vec<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = text == "0" || (only(digits, |byte| byte.is_ascii_digit()) && !digits.starts_with('0'));
    match text {
        "" => vec!["must be non-empty".to_owned()],
        _ if canonical => Vec::new(),
        _ => vec!["must be a valid decimal integer in canonical form".to_owned()],
    }
}

fn path_segment_problems(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        text => path_segment_prefix_problems(text),
    }
}

/// A prefix may be a dot: something will follow.
pub(super) fn path_segment_prefix_problems(text: &str) -> Vec<String> {
    let banned = ['/', '%'].into_iter().filter(|banned| text.contains(*banned));
    banned.map(|banned| format!("may not contain '{banned}'")).collect()
}
