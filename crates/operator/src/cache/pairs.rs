//! The labels or annotations of a cached object, parsed without copying.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use std::{borrow::Cow, fmt};

/// Names with their values, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Pairs<'a> {
    /// From a JSON object or an empty text.
    pub(crate) fn read(json: &'a str) -> Pairs<'a> {
        if json.is_empty() { Pairs::default() } else { serde_json::from_str(json).unwrap_or_default() }
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl api::label_selector::Labels for Pairs<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

/// A string that is borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
        #[derive(Deserialize)]
        struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
        Borrowed::deserialize(deserializer).map(|borrowed| Text(borrowed.0))
    }
}

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'de>, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Pairs<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(4));
                while let Some((name, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
                    pairs.push((name.0, value.0));
                }
                pairs.sort();
                Ok(Pairs(pairs))
            }

            fn visit_unit<E>(self) -> Result<Pairs<'de>, E> {
                Ok(Pairs::default())
            }
        }
        deserializer.deserialize_any(Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name() {
        for (json, name, expected) in [
            (r#"{"b":"2","a":"1"}"#, "a", Some("1")),
            (r#"{"b":"2","a":"1"}"#, "b", Some("2")),
            (r#"{"b":"2","a":"1"}"#, "c", None),
            (r#"{"a":"\u003cb\"c"}"#, "a", Some("<b\"c")),
            ("null", "a", None),
            ("", "a", None),
        ] {
            assert_eq!(Pairs::read(json).get(name), expected, "{json}");
        }
    }
}
