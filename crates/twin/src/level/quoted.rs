//! Objects quoted in messages: sorts their members, whose order has no meaning, and normalizes numbers.

use crate::json::Json;

/// The message with the members of every quoted object sorted: `"{\"a\":1}"` and `'{"a":1}'`.
pub(super) fn sort_members(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        match sorted(found) {
            Some((text, behind)) => {
                out.push_str(&text);
                rest = behind;
            }
            None => {
                out.push_str(&found[..1]);
                rest = &found[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The quoted object at the start of a text with its members sorted, and the rest.
fn sorted(text: &str) -> Option<(String, &str)> {
    if let Some(bare) = text.strip_prefix("'{").map(|_| &text[1..]) {
        let (object, behind) = Json::parse(bare.as_bytes())?;
        let behind = std::str::from_utf8(behind).ok()?;
        return Some((format!("'{}", sort(object)), behind));
    }
    if !text.starts_with("\"{") {
        return None;
    }
    let (quoted, behind) = Json::parse(text.as_bytes())?;
    let inner = quoted.as_text()?;
    let (object, []) = Json::parse(inner.as_bytes())? else { return None };
    // Blanks behind the closing quote are skipped by the parser.
    let length = text.len() - behind.len();
    let blanks = text[..length].len() - text[..length].trim_end().len();
    let again = serde_json::Value::from(sort(object).to_string()).to_string();
    Some((again, &text[length - blanks..]))
}

fn sort(value: Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(name, value)| (name, sort(value))).collect();
            for (_, port) in members.iter_mut().filter(|(name, _)| name.ends_with("odePort")) {
                *port = Json::text("{port}");
            }
            for (_, entries) in members.iter_mut().filter(|(name, _)| name == "managedFields") {
                super::order::sort_managers(entries);
            }
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Json::Object(members)
        }
        Json::List(items) => Json::List(items.into_iter().map(sort).collect()),
        // One server quotes a number as sent, the other as parsed.
        Json::Number(digits) if digits.contains(['.', 'e', 'E']) || digits.len() > 18 => {
            Json::Number(digits.parse::<f64>().map_or(digits, |number| number.to_string()))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_quoted_objects_are_sorted() {
        for (message, expected) in [
            (r#"a "b" c"#, r#"a "b" c"#),
            (
                r#"value: "{\"b\":1,\"a\":{\"d\":[],\"c\":2}}": bad"#,
                r#"value: "{\"a\":{\"c\":2,\"d\":[]},\"b\":1}": bad"#,
            ),
            (r#"missing in '{"b":1,"a":2}' (x)"#, r#"missing in '{"a":2,"b":1}' (x)"#),
            (r#"cut "{\"b\":1"#, r#"cut "{\"b\":1"#),
            (r#"no JSON '{b}'"#, r#"no JSON '{b}'"#),
        ] {
            assert_eq!(sort_members(message), expected, "{message}");
        }
    }
}
