//! Compares two normalized responses, and returns every difference.

use crate::{
    answer::{Answer, Content},
    json::Json,
};
use std::fmt;

/// The most differences of one comparison.
const DIFFERENCE_LIMIT: usize = 40;
const SHOWN_LENGTH: usize = 600;
/// Ends the path of a difference in the order of an object's members only.
pub const ORDER: &str = "(order of members)";
pub const ABSENT: &str = "(absent)";

/// One place where the answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `status`, `header warning`, `body.metadata.name`, `event[2].type`.
    pub path: String,
    pub real: String,
    pub ours: String,
}

impl Difference {
    /// Equal for differences of the same cause: without indexes, numbers and quoted names.
    pub fn signature(&self) -> String {
        // Two bodies of different types: their contents do not show the cause.
        if self.path == "body" {
            return format!("body|{}", self.ours.starts_with('{'));
        }
        let path = self.path.replacen("body.message.", "body.", 1);
        let path: String = path.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        format!("{path}|{}|{}", digest(&self.real), digest(&self.ours))
    }
}

/// The first words of a text, without quoted names, kinds, numbers and dotted names.
fn digest(text: &str) -> String {
    const WORDS: usize = 9;
    let mut outside = String::new();
    for (at, part) in text.split("\\\"").enumerate() {
        outside.push_str(if at % 2 == 0 { part } else { " " });
    }
    let is_word =
        |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || ":,(){\"".contains(letter));
    let is_code = |word: &&str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<_> =
        outside.split_whitespace().filter(|it| is_word(it) || is_code(it)).take(WORDS).collect();
    words.join(" ")
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text.chars().take(SHOWN_LENGTH).collect::<String>();
        write!(f, "{}\n    real: {}\n    ours: {}", self.path, shown(&self.real), shown(&self.ours))
    }
}

pub fn differences(real: &Answer, ours: &Answer) -> Vec<Difference> {
    let mut found = Found::default();
    if real.status != ours.status {
        let print_line = |answer: &Answer| format!("{} {}", answer.status, summary(&answer.content));
        found.add("status", print_line(real), print_line(ours));
        return found.0;
    }
    headers(real, ours, &mut found);
    match (&real.content, &ours.content) {
        (Content::Json(real), Content::Json(ours)) => json("body", real, ours, &mut found),
        (Content::Events(real), Content::Events(ours)) => list("event", real, ours, &mut found),
        (Content::Text(real), Content::Text(ours)) => lines(real, ours, &mut found),
        (real, ours) if real == ours => {}
        (real, ours) => found.add("body", summary(real), summary(ours)),
    }
    found.0
}

#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    fn add(&mut self, path: &str, real: String, ours: String) {
        if self.0.len() < DIFFERENCE_LIMIT {
            self.0.push(Difference { path: path.to_owned(), real, ours });
        }
    }
}

fn summary(content: &Content) -> String {
    match content {
        Content::Empty => "(empty)".to_owned(),
        Content::Json(json) => match (json.get("message"), json.at(&["details", "causes"])) {
            (Some(message @ Json::Text(_)), Some(causes)) => format!("{message} {causes}"),
            (Some(message @ Json::Text(_)), None) => message.to_string(),
            _ => json.to_string(),
        },
        Content::Events(events) => format!("{} events", events.len()),
        Content::Text(text) | Content::Failed(text) => text.clone(),
    }
}

fn headers(real: &Answer, ours: &Answer, found: &mut Found) {
    let values = |answer: &Answer, name: &str| -> Vec<String> {
        answer.headers.iter().filter(|(header, _)| *header == name).map(|(_, value)| value.clone()).collect()
    };
    let mut names: Vec<_> = real.headers.iter().chain(&ours.headers).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (real, ours) = (values(real, name), values(ours, name));
        if real != ours {
            let print_line =
                |values: Vec<String>| if values.is_empty() { ABSENT.to_owned() } else { values.join(" | ") };
            found.add(&format!("header {name}"), print_line(real), print_line(ours));
        }
    }
}

fn json(path: &str, real: &Json, ours: &Json, found: &mut Found) {
    match (real, ours) {
        (Json::Object(real), Json::Object(ours)) => object(path, real, ours, found),
        (Json::List(real), Json::List(ours)) => list(path, real, ours, found),
        (real, ours) if real == ours => {}
        (real, ours) => found.add(path, real.to_string(), ours.to_string()),
    }
}

fn object(path: &str, real: &[(String, Json)], ours: &[(String, Json)], found: &mut Found) {
    let names = |members: &[(String, Json)]| members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let (real_names, our_names) = (names(real), names(ours));
    for (name, value) in real {
        let path = format!("{path}.{name}");
        match ours.iter().find(|(other, _)| other == name) {
            Some((_, Json::List(other))) if name == "causes" => causes(&path, value.items(), other, found),
            Some((_, other)) => json(&path, value, other, found),
            None => found.add(&path, value.to_string(), ABSENT.to_owned()),
        }
    }
    for (name, value) in ours.iter().filter(|(name, _)| !real_names.contains(name)) {
        found.add(&format!("{path}.{name}"), ABSENT.to_owned(), value.to_string());
    }
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    if real_names != our_names && sorted(&real_names) == sorted(&our_names) {
        found.add(&format!("{path} {ORDER}"), real_names.join(" "), our_names.join(" "));
    }
}

/// The causes of a Status: each that only one server returns is a separate difference.
fn causes(path: &str, real: &[Json], ours: &[Json], found: &mut Found) {
    for cause in real.iter().filter(|cause| !ours.contains(cause)) {
        found.add(path, cause.to_string(), ABSENT.to_owned());
    }
    for cause in ours.iter().filter(|cause| !real.contains(cause)) {
        found.add(path, ABSENT.to_owned(), cause.to_string());
    }
}

fn list(path: &str, real: &[Json], ours: &[Json], found: &mut Found) {
    for at in 0..real.len().max(ours.len()) {
        let path = format!("{path}[{at}]");
        match (real.get(at), ours.get(at)) {
            (Some(real), Some(ours)) => json(&path, real, ours, found),
            (real, ours) => {
                let print_line =
                    |value: Option<&Json>| value.map_or_else(|| ABSENT.to_owned(), Json::to_string);
                found.add(&path, print_line(real), print_line(ours));
            }
        }
    }
}

fn lines(real: &str, ours: &str, found: &mut Found) {
    let (mut real, mut ours) = (real.lines(), ours.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (real.next(), ours.next()) {
            (None, None) => return,
            (real, ours) if real == ours => {}
            (real, ours) => {
                let print_line = |line: Option<&str>| line.unwrap_or(ABSENT).to_owned();
                // The lines after it are shifted.
                return found.add(&format!("line {number}"), print_line(real), print_line(ours));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(real: &str, ours: &str) -> Vec<String> {
        let answer =
            |text| Answer { status: 200, headers: vec![], content: Content::Json(Json::literal(text)) };
        let found = differences(&answer(real), &answer(ours));
        found.into_iter().map(|it| format!("{} {} {}", it.path, it.real, it.ours)).collect()
    }

    #[test]
    fn each_difference_has_its_path() {
        for (real, ours, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, vec![]),
            (r#"{"a":1}"#, r#"{"a":"1"}"#, vec![r#"body.a 1 "1""#]),
            (r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, vec!["body.a[1] 2 (absent)"]),
            (r#"{"a":1}"#, r#"{"b":1}"#, vec!["body.a 1 (absent)", "body.b (absent) 1"]),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, vec!["body (order of members) a b b a"]),
            (
                r#"{"causes":[1,2]}"#,
                r#"{"causes":[2,3]}"#,
                vec!["body.causes 1 (absent)", "body.causes (absent) 3"],
            ),
        ] {
            assert_eq!(compared(real, ours), expected);
        }
    }

    #[test]
    fn signatures_contain_no_numbers() {
        let at = |path: &str| Difference { path: path.into(), real: "\"a1\"".into(), ours: ABSENT.into() };
        assert_eq!(at("body.items[3].x").signature(), at("body.items[12].x").signature());
        for (text, expected) in [
            (
                r#"403 "earlies.twin.example.com \"b\" is forbidden: User \"x\" cannot create""#,
                "403 is forbidden: cannot create\"",
            ),
            (r#"404 "pods \"a\" not found""#, "404 \"pods not found\""),
        ] {
            assert_eq!(digest(text), expected);
        }
    }
}
