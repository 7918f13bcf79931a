//! JSON that keeps the order of members, duplicates, and the spelling of numbers and strings.

use std::fmt::{self, Write};

/// The nesting limit of the parser; both servers reject far less.
const DEPTH_LIMIT: usize = 600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    Null,
    Bool(bool),
    /// The digits as written: `1e3` and `1000` differ.
    Number(String),
    /// The text between the quotes, still escaped.
    Text(String),
    List(Vec<Json>),
    /// Names are still escaped, and may be duplicates.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn text(text: &str) -> Json {
        let quoted = serde_json::Value::from(text).to_string();
        Json::Text(quoted[1..quoted.len() - 1].to_owned())
    }

    pub fn number(number: i64) -> Json {
        Json::Number(number.to_string())
    }

    /// Parses one value and returns the bytes after it.
    pub fn parse(bytes: &[u8]) -> Option<(Json, &[u8])> {
        let mut reader = Reader { bytes, at: 0 };
        let value = reader.value(0)?;
        reader.skip_space();
        Some((value, &bytes[reader.at..]))
    }

    /// A value written in the source of this crate or checked before.
    pub fn literal(text: &str) -> Json {
        match Json::parse(text.as_bytes()) {
            Some((value, [])) => value,
            _ => Json::text(&format!("not JSON: {text}")),
        }
    }

    /// The unescaped string, if it is one.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Json::Text(raw) if raw.contains('\\') => serde_json::from_str(&format!("\"{raw}\"")).ok(),
            Json::Text(raw) => Some(raw.clone()),
            _ => None,
        }
    }

    pub fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    pub fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        self.members().iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        match self {
            Json::Object(members) => {
                members.iter_mut().find(|(member, _)| member == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub fn at(&self, path: &[&str]) -> Option<&Json> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    pub fn text_at(&self, path: &[&str]) -> Option<String> {
        self.at(path).and_then(Json::as_text)
    }

    /// Sets a member of an object; anything else becomes an object first.
    pub fn set(&mut self, name: &str, value: Json) {
        if let Some(present) = self.get_mut(name) {
            *present = value;
            return;
        }
        if !matches!(self, Json::Object(_)) {
            *self = Json::Object(Vec::new());
        }
        if let Json::Object(members) = self {
            members.push((name.to_owned(), value));
        }
    }

    /// Sets a nested value, and creates the objects on the way.
    pub fn set_at(&mut self, path: &[&str], value: Json) {
        match path {
            [] => *self = value,
            [name, rest @ ..] => {
                if self.get(name).is_none() {
                    self.set(name, Json::Object(Vec::new()));
                }
                if let Some(inner) = self.get_mut(name) {
                    inner.set_at(rest, value);
                }
            }
        }
    }

    pub fn remove(&mut self, name: &str) {
        if let Json::Object(members) = self {
            members.retain(|(member, _)| member != name);
        }
    }

    /// Calls `change` with every string and member name, as written; members sorted by name.
    pub fn each_text(&mut self, change: &mut impl FnMut(&mut String)) {
        match self {
            Json::Text(text) => change(text),
            Json::List(items) => items.iter_mut().for_each(|item| item.each_text(change)),
            Json::Object(members) => {
                let mut by_name: Vec<_> = members.iter_mut().collect();
                by_name.sort_by(|one, other| one.0.cmp(&other.0));
                for (name, value) in by_name {
                    change(name);
                    value.each_text(change);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// The same value without duplicates.
    pub fn to_value(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.to_string()).ok()
    }

    pub fn from_value(value: &serde_json::Value) -> Json {
        Json::literal(&value.to_string())
    }

    /// Block-style YAML, strings in double quotes.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        self.write_yaml(0, &mut out);
        out
    }

    fn write_yaml(&self, depth: usize, out: &mut String) {
        match self {
            Json::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    out.push_str(&"  ".repeat(depth));
                    out.push_str(&format!("\"{name}\":"));
                    value.write_yaml_behind(depth + 1, out);
                }
            }
            Json::List(items) if !items.is_empty() => {
                for item in items {
                    out.push_str(&"  ".repeat(depth));
                    out.push('-');
                    item.write_yaml_behind(depth + 1, out);
                }
            }
            other => out.push_str(&format!("{}{other}\n", "  ".repeat(depth))),
        }
    }

    fn write_yaml_behind(&self, depth: usize, out: &mut String) {
        let is_block = match self {
            Json::Object(members) => !members.is_empty(),
            Json::List(items) => !items.is_empty(),
            _ => false,
        };
        if is_block {
            out.push('\n');
            self.write_yaml(depth, out);
        } else {
            out.push_str(&format!(" {self}\n"));
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(digits) => f.write_str(digits),
            Json::Text(raw) => write!(f, "\"{raw}\""),
            Json::List(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{item}")?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (at, (name, value)) in members.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}\"{name}\":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        self.skip_space();
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, value: Json) -> Option<Json> {
        self.bytes[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            value
        })
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > DEPTH_LIMIT {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            b'n' => self.word("null", Json::Null),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'"' => self.string().map(Json::Text),
            b'[' => self.list(depth),
            b'{' => self.object(depth),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Json> {
        let from = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.bytes[from..self.at]).ok()?;
        Some(Json::Number(digits.to_owned()))
    }

    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let from = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        let raw = std::str::from_utf8(self.bytes.get(from..self.at)?).ok()?;
        self.at += 1;
        Some(raw.to_owned())
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        self.take(b'[')?;
        let mut items = Vec::new();
        if self.take(b']').is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']').is_some() {
                return Some(Json::List(items));
            }
            self.take(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        self.take(b'{')?;
        let mut members = Vec::new();
        if self.take(b'}').is_some() {
            return Some(Json::Object(members));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            self.take(b':')?;
            members.push((name, self.value(depth + 1)?));
            if self.take(b'}').is_some() {
                return Some(Json::Object(members));
            }
            self.take(b',')?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_json_is_written_with_its_own_spelling() {
        for text in [
            r#"{"b":1e3,"a":[],"b":{"x":null}}"#,
            r#"["\u003c","a\"b",-0.50,true]"#,
            r#"{"k:{\"name\":\"x\"}":{}}"#,
        ] {
            assert_eq!(Json::literal(text).to_string(), text);
        }
    }

    #[test]
    fn broken_json_is_refused() {
        for text in ["", "{", r#"{"a":1}}"#, r#"{"a" 1}"#, "[1,]", r#""abc"#] {
            assert!(!matches!(Json::parse(text.as_bytes()), Some((_, []))), "{text}");
        }
    }

    #[test]
    fn yaml_says_the_same() {
        let value = Json::literal(r#"{"a":{"b":[1,{"c":"x: y"}],"e":{}},"n":null}"#);
        assert_eq!(
            value.to_yaml(),
            "\"a\":\n  \"b\":\n    - 1\n    -\n      \"c\": \"x: y\"\n  \"e\": {}\n\"n\": null\n"
        );
    }
}
