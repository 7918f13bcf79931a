//! Times, in seconds or microseconds: the printed text parses to the same time.

use super::texts;
use crate::Target;
use api::time::{MicroTime, Time};

pub(super) const TARGET: Target = Target { name: "time", check, seeds, words: WORDS };

const WORDS: &[&str] = &[
    "Z",
    "T",
    "-",
    ":",
    ".",
    "+00:00",
    "-23:59",
    "+14:00",
    "9999",
    "0000",
    "0001",
    "60",
    "29",
    "02",
    ".999999999",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "2024-02-29T12:34:56Z",
        "1969-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59+14:00",
        "2024-02-29T12:34:56,5-01:30",
    ])
}

fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(time) = text.parse::<Time>() {
        let printed = time.to_string();
        assert_eq!(printed.parse::<Time>().ok(), Some(time), "{printed}");
    }
    if let Ok(time) = text.parse::<MicroTime>() {
        let printed = time.to_string();
        assert_eq!(printed.parse::<MicroTime>().ok(), Some(time), "{printed}");
    }
}
