//! Translates the parser's errors to the texts of Go's library.

use granit_parser::ScanError;

pub(super) const NO_TOKEN: &str = "found character that cannot start any token";

const NO_SEQUENCE_END: &str = "did not find expected ',' or ']'";
const NO_MAPPING_END: &str = "did not find expected ',' or '}'";
const NO_CONTENT: &str = "did not find expected node content";
const NO_KEY: &str = "did not find expected key";

/// The part of Go's library that reports the error, and its line, counted from zero.
enum ReportedBy {
    Scanner(usize),
    Parser(usize),
}

/// The error, with its line where Go gives one.
pub(super) fn of(error: &ScanError, text: &str) -> String {
    let (message, marker) = (error.info(), error.marker());
    // Go omits the context.
    let problem = match message.strip_prefix("while ").and_then(|rest| rest.split_once(", ")) {
        Some((_, problem)) => problem,
        None => &message,
    };
    let here = marker.byte_offset().and_then(|at| text.get(at..)).unwrap_or_default();
    let line = marker.line().saturating_sub(1);
    let row = text.lines().nth(line).unwrap_or_default();
    let (problem, found) = match problem {
        "found unknown anchor" => return format!("unknown anchor '{}' referenced", anchor(here)),
        "did not find expected key" if row.starts_with('\t') => (NO_TOKEN, ReportedBy::Scanner(line)),
        "unclosed bracket '['" | "unclosed bracket '{'"
            if text.trim_end().ends_with(['[', '{', ',', ':']) =>
        {
            (NO_CONTENT, ReportedBy::Parser(text.lines().count()))
        }
        // Go reports it at the end of the text.
        "unclosed bracket '['" => (NO_SEQUENCE_END, ReportedBy::Parser(text.lines().count())),
        "unclosed bracket '{'" => (NO_MAPPING_END, ReportedBy::Parser(text.lines().count())),
        "expected ',' or ']'" => (NO_SEQUENCE_END, ReportedBy::Parser(line)),
        "misplaced bracket" => (NO_CONTENT, ReportedBy::Parser(line)),
        "comment intercepting the multiline text" => (NO_KEY, ReportedBy::Parser(line + 1)),
        "unclosed quote" | "invalid indentation in multiline quoted scalar" => {
            ("found unexpected end of stream", ReportedBy::Scanner(text.matches('\n').count()))
        }
        "simple key expected ':'" => ("could not find expected ':'", ReportedBy::Scanner(line + 1)),
        "did not find expected hexadecimal number" => {
            ("did not find expected hexdecimal number", ReportedBy::Scanner(line))
        }
        _ if problem.starts_with("mismatched bracket '['") => (NO_SEQUENCE_END, ReportedBy::Parser(line)),
        _ if problem.starts_with("mismatched bracket '{'") => (NO_MAPPING_END, ReportedBy::Parser(line)),
        _ if problem.starts_with("tabs disallowed") => (NO_TOKEN, ReportedBy::Scanner(line)),
        _ if problem.starts_with("invalid trailing content") => (NO_KEY, ReportedBy::Parser(line)),
        _ if problem.contains("surrogate") => {
            ("found invalid Unicode character escape code", ReportedBy::Scanner(line))
        }
        _ if problem.starts_with("unexpected character") => match here.starts_with(char::is_control) {
            true => ("control characters are not allowed", ReportedBy::Scanner(line)),
            false => (NO_TOKEN, ReportedBy::Scanner(line)),
        },
        NO_MAPPING_END | NO_KEY | "did not find expected '-' indicator" => {
            (problem, ReportedBy::Parser(line))
        }
        _ => (problem, ReportedBy::Scanner(line)),
    };
    match found {
        ReportedBy::Scanner(0) | ReportedBy::Parser(0) => problem.to_owned(),
        ReportedBy::Scanner(line) => format!("line {}: {problem}", line + 1),
        ReportedBy::Parser(line) => format!("line {line}: {problem}"),
    }
}

fn anchor(text: &str) -> &str {
    let text = text.strip_prefix('*').unwrap_or(text);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.split(|c| !is_part(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::yaml::to_json;

    #[test]
    fn errors_have_the_texts_of_go() {
        for (text, expected) in [
            ("a: *x", "yaml: unknown anchor 'x' referenced"),
            ("metadata: [unclosed", "yaml: line 1: did not find expected ',' or ']'"),
            ("{", "yaml: line 1: did not find expected node content"),
            ("a: [1,\n", "yaml: line 1: did not find expected node content"),
            ("a: 'unclosed", "yaml: found unexpected end of stream"),
            ("a: {name: x\nb: {a: b}\n", "yaml: line 1: did not find expected ',' or '}'"),
            ("a: {name: x}\nb:\n\ta: b\n", "yaml: line 3: found character that cannot start any token"),
            ("a: {name: x}\n\tbad", "yaml: line 2: found character that cannot start any token"),
            ("a:\n  b: [1,\n  c: 2\n", "yaml: line 3: did not find expected ',' or ']'"),
            ("a: 'x\nb: c\n", "yaml: line 3: found unexpected end of stream"),
            ("\ta: b", "yaml: found character that cannot start any token"),
            ("  \ta: b", "yaml: found character that cannot start any token"),
            ("\t", "yaml: found character that cannot start any token"),
            ("# c\n\n\ta: b", "yaml: line 3: found character that cannot start any token"),
            ("a: @x", "yaml: found character that cannot start any token"),
            ("a: \u{1}b\n", "yaml: control characters are not allowed"),
            ("- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator"),
            ("a: b\n- c\n", "yaml: line 1: did not find expected key"),
            ("{a: b]", "yaml: did not find expected ',' or '}'"),
            ("a: ]", "yaml: did not find expected node content"),
            ("a: 'b' c\n", "yaml: did not find expected key"),
            ("key: \"\\q\"", "yaml: found unknown escape character"),
            ("a: b: c", "yaml: mapping values are not allowed in this context"),
            ("%YAML 9\n---\na", "yaml: did not find expected digit or '.' character"),
        ] {
            let message = to_json(text.as_bytes()).err().map(|error| error.to_string());
            assert_eq!(message.as_deref(), Some(expected), "{text:?}");
        }
    }
}
