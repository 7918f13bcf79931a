//! Base64 as Go's `StdEncoding` reads and writes it: padded; line breaks are skipped.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::fmt;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BAD: u8 = 0xff;

/// The position of the first byte that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptInput(pub(crate) usize);

impl fmt::Display for CorruptInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "illegal base64 data at input byte {}", self.0)
    }
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Not that of the `base64` crate: errors name the same byte as Go's, and line breaks are skipped.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    loop {
        let (quantum, digits, next) = quantum(text, at)?;
        // A last quantum of n digits holds n - 1 bytes; the remaining bits are ignored.
        bytes.extend_from_slice(&quantum.to_be_bytes()[1..digits.max(1)]);
        at = next;
        if digits < 4 {
            return Ok(bytes);
        }
    }
}

/// Four digits from a position: their bits, how many there were before the end, and the next position.
/// Follows Go's `decodeQuantum`, so that errors name the same byte.
fn quantum(text: &[u8], start: usize) -> Result<(u32, usize, usize), CorruptInput> {
    let mut bits = 0;
    let mut at = start;
    let mut digits = 0;
    while digits < 4 {
        let Some(&byte) = text.get(at) else {
            return match digits {
                0 => Ok((bits, 0, at)),
                _ => Err(CorruptInput(at - digits)),
            };
        };
        at += 1;
        if matches!(byte, b'\n' | b'\r') {
            continue;
        }
        if byte != b'=' {
            let value = VALUES[usize::from(byte)];
            if value == BAD {
                return Err(CorruptInput(at - 1));
            }
            bits |= u32::from(value) << (18 - 6 * digits);
            digits += 1;
            continue;
        }
        return padding(text, at, digits).map(|next| (bits, digits, next));
    }
    Ok((bits, 4, at))
}

/// After the first `=` only these may follow: another one after two digits, line breaks, then the end.
fn padding(text: &[u8], mut at: usize, digits: usize) -> Result<usize, CorruptInput> {
    let skip_breaks = |mut at: usize| {
        while matches!(text.get(at), Some(b'\n' | b'\r')) {
            at += 1;
        }
        at
    };
    match digits {
        0 | 1 => return Err(CorruptInput(at - 1)),
        2 => {
            at = skip_breaks(at);
            match text.get(at) {
                None => return Err(CorruptInput(text.len())),
                Some(b'=') => at += 1,
                Some(_) => return Err(CorruptInput(at - 1)),
            }
        }
        _ => {}
    }
    at = skip_breaks(at);
    if at < text.len() { Err(CorruptInput(at)) } else { Ok(at) }
}

/// Whether decoding and re-encoding the text gives the same text.
pub(crate) fn is_canonical(text: &[u8]) -> bool {
    let digits = text.strip_suffix(b"=").map_or(text, |rest| rest.strip_suffix(b"=").unwrap_or(rest));
    let spare_bits = match digits.len() % 4 {
        0 => 0,
        2 => 0x0f,
        3 => 0x03,
        _ => return false,
    };
    let last = digits.last().map_or(0, |digit| VALUES[usize::from(*digit)]);
    text.len().is_multiple_of(4)
        && digits.iter().all(|digit| VALUES[usize::from(*digit)] != BAD)
        && last & spare_bits == 0
}

static VALUES: [u8; 256] = {
    let mut values = [BAD; 256];
    let mut nth = 0;
    while nth < 64 {
        values[ALPHABET[nth] as usize] = nth as u8;
        nth += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("", Ok("")),
            ("YQ==", Ok("a")),
            ("YWI=", Ok("ab")),
            ("YWJj", Ok("abc")),
            ("YW\nJj\r\n", Ok("abc")),
            ("YR==", Ok("a")),
            ("YQ=\n=\n", Ok("a")),
            ("YQ", Err(0)),
            ("YWJjYQ", Err(4)),
            ("YWJjY", Err(4)),
            ("Y===", Err(1)),
            ("=", Err(0)),
            ("YQ=", Err(3)),
            ("YQ=a", Err(2)),
            ("YQ==YQ==", Err(4)),
            ("YWI=x", Err(4)),
            ("not base64!", Err(3)),
            ("YWJj!", Err(4)),
            ("YW J", Err(2)),
            ("-_-_", Err(0)),
        ] {
            let read = decode(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(read, expected.map(str::to_owned).map_err(CorruptInput), "{text:?}");
        }
    }

    #[test]
    fn canonical_text_is_recognized() {
        for (text, canonical) in
            [("", true), ("YQ==", true), ("YWI=", true), ("YWJj", true), ("YR==", false), ("YWJ=", false)]
        {
            assert_eq!(is_canonical(text.as_bytes()), canonical, "{text}");
            assert_eq!(encode(&decode(text.as_bytes()).unwrap()) == text, canonical, "{text}");
        }
        for text in ["YQ", "Y===", "YW\nJj", "====", "a"] {
            assert!(!is_canonical(text.as_bytes()), "{text}");
        }
    }
}
