//! The query of a URL: its names and values.

/// Names and values, decoded; a pair that cannot be decoded is left out.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    })
}

/// Kubernetes: a flag is set by its name, unless its value is 0 or false.
pub(crate) fn is_true(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "0" | "false")
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_pair_by_pair() {
        for (query, expected) in [
            ("", &[][..]),
            ("a=b&c", &[("a", "b"), ("c", "")]),
            ("command=sh&command=echo+a%20b%2Fc", &[("command", "sh"), ("command", "echo a b/c")]),
            ("a=%zz&b=%4&c=1", &[("c", "1")]),
            ("a=%C3%A4&b=%ff", &[("a", "ä")]),
        ] {
            let found: Vec<_> = pairs(query).collect();
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected, "{query}");
        }
    }
}
