//! How a text is written: plain, quoted or as a block, by the rules of kubectl's YAML library.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// The style of a text. A key is never a block.
pub(super) fn style(text: &str, is_key: bool) -> Style {
    let is_special = text.chars().any(|c| !is_printable(c)) || has(text, |a, b| a == ' ' && b == '\n');
    if text.contains('\n') {
        return if is_special || is_key || text.ends_with(' ') {
            Style::DoubleQuoted
        } else {
            Style::Literal
        };
    }
    // Kubernetes: a text that means something else without quotes gets double ones.
    if is_special || schema::yaml::means_more(text) {
        return Style::DoubleQuoted;
    }
    if text.starts_with(' ') || text.ends_with(' ') || has_indicator(text) {
        Style::SingleQuoted
    } else {
        Style::Plain
    }
}

/// Whether something in the text begins a comment, a key, a list or another structure.
fn has_indicator(text: &str) -> bool {
    let blank_or_end = |c: Option<char>| matches!(c, None | Some(' ' | '\t' | '\n'));
    let mut characters = text.chars();
    let first = characters.next();
    let is_at_start = match first {
        Some(
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
        ) => true,
        Some('?' | ':' | '-') => blank_or_end(characters.next()),
        _ => false,
    };
    is_at_start
        || text.starts_with("---")
        || text.starts_with("...")
        || has(text, |a, b| (a == ':' && matches!(b, ' ' | '\t')) || (matches!(a, ' ' | '\t') && b == '#'))
        || (text.len() > 1 && text.ends_with(':'))
}

fn has(text: &str, test: impl Fn(char, char) -> bool) -> bool {
    text.chars().zip(text.chars().skip(1)).any(|(a, b)| test(a, b))
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}

/// A character between double quotes.
pub(super) fn escaped(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if is_printable(c) => return c.to_string(),
        _ => {
            let code = u32::from(c);
            return match code {
                ..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
