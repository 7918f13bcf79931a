//! Percent encoding, which follows different rules in each part of a URL.

use api::go::quote;

/// A part of a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

impl Part {
    /// Whether a byte needs no escape in this part.
    pub(super) fn takes(self, byte: u8) -> bool {
        if byte.is_ascii_alphanumeric() {
            return true;
        }
        if matches!(self, Part::Host | Part::Zone) && br#"!$&'()*+,;=:[]<>""#.contains(&byte) {
            return true;
        }
        match byte {
            b'-' | b'_' | b'.' | b'~' => true,
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match self {
                Part::Path => byte != b'?',
                Part::User => !b"@/?:".contains(&byte),
                Part::Fragment => true,
                Part::Query | Part::Host | Part::Zone => false,
            },
            b'!' | b'(' | b')' | b'*' => self == Part::Fragment,
            _ => false,
        }
    }
}

/// Go: escapes of these characters are kept as written.
pub(super) fn is_encoded(text: &[u8], part: Part) -> bool {
    text.iter().all(|byte| b"!$&'()*+,;=:@[]%".contains(byte) || part.takes(*byte))
}

pub(super) fn escape(bytes: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if part.takes(byte) {
            out.push(byte);
        } else {
            out.extend(format!("%{byte:02X}").into_bytes());
        }
    }
    out
}

pub(super) fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                out.push(escaped(&bytes[at..], part)?);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            _ if in_host && byte.is_ascii() && !part.takes(byte) => {
                let character = char::from(byte).to_string();
                return Err(format!("invalid character {} in host name", quote(&character)));
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
}

/// The byte of the `%xy` at the beginning.
fn escaped(bytes: &[u8], part: Part) -> Result<u8, String> {
    let written = &bytes[..bytes.len().min(3)];
    let refuse = || Err(format!("invalid URL escape {}", quote(&String::from_utf8_lossy(written))));
    let digit = |index: usize| written.get(index).and_then(|byte| char::from(*byte).to_digit(16));
    let (Some(high), Some(low)) = (digit(1), digit(2)) else { return refuse() };
    let byte = (high * 16 + low) as u8;
    let refused = match part {
        // In a host only bytes beyond ASCII may be escaped, and the percent sign before a zone.
        Part::Host => byte.is_ascii() && written != b"%25",
        Part::Zone => written != b"%25" && byte != b' ' && !Part::Host.takes(byte),
        _ => false,
    };
    if refused { refuse() } else { Ok(byte) }
}
