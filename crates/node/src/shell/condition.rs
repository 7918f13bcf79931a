//! Conditions: `test`, `[ … ]` and `[[ … ]]`.

/// The status of a malformed condition.
const MALFORMED: i32 = 2;

/// Whether a file test holds; `None` if that is not known.
pub(super) type FileTest<'a> = dyn Fn(&str, &str) -> Option<bool> + 'a;

/// The status of a condition; `None` if it is not understood.
pub(super) fn status(words: &[&str], has_patterns: bool, file_test: &FileTest<'_>) -> Option<i32> {
    // Not by recursion: there may be thousands.
    let negations = words.iter().take_while(|word| **word == "!").count();
    let status = plain_status(&words[negations..], has_patterns, file_test)?;
    Some(if status < MALFORMED && negations % 2 == 1 { 1 - status } else { status })
}

/// The status of a condition without negations.
fn plain_status(words: &[&str], has_patterns: bool, file_test: &FileTest<'_>) -> Option<i32> {
    let holds = match words {
        [] => false,
        [text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        ["-n", text] => !text.is_empty(),
        [test @ ("-e" | "-f" | "-r" | "-d" | "-s" | "-w"), file] => file_test(test, file)?,
        // `[[ x == y* ]]` compares with a pattern.
        [_, "=" | "==" | "!=", right] if has_patterns && right.contains(['*', '?', '[']) => return None,
        [left, "=" | "==", right] => left == right,
        [left, "!=", right] => left != right,
        [left, comparison @ ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"), right] => {
            let [left, right] = [left, right].map(|it| it.trim().parse::<i64>());
            let (Ok(left), Ok(right)) = (left, right) else { return Some(MALFORMED) };
            match *comparison {
                "-eq" => left == right,
                "-ne" => left != right,
                "-lt" => left < right,
                "-le" => left <= right,
                "-gt" => left > right,
                _ => left >= right,
            }
        }
        _ => return None,
    };
    Some(i32::from(!holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_as_in_a_shell() {
        let file_test = |test: &str, file: &str| match file {
            "/data/there" => Some(test != "-d"),
            "/data/absent" => Some(false),
            _ => None,
        };
        for (text, expected) in [
            ("", Some(1)),
            ("a", Some(0)),
            ("a = a", Some(0)),
            ("a == b", Some(1)),
            ("a != b", Some(0)),
            ("! a = a", Some(1)),
            ("! ! a = a", Some(0)),
            ("!", Some(0)),
            ("1 -eq 01", Some(0)),
            ("1 -ne 1", Some(1)),
            ("-1 -lt 0", Some(0)),
            ("2 -le 1", Some(1)),
            ("2 -gt 1", Some(0)),
            ("1 -ge 2", Some(1)),
            ("x -eq 1", Some(2)),
            ("! x -eq 1", Some(2)),
            ("-n a", Some(0)),
            ("-z a", Some(1)),
            ("-r /data/there", Some(0)),
            ("-d /data/there", Some(1)),
            ("-f /data/absent", Some(1)),
            ("! -f /data/absent", Some(0)),
            ("-f /etc/passwd", None),
            ("-x /data/there", None),
            ("a = b -a c = c", None),
            ("a =~ b", None),
        ] {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(status(&words, false, &file_test), expected, "{text}");
        }
        assert_eq!(status(&vec!["!"; 100_001], false, &file_test), Some(0));
        assert_eq!(status(&["web-1", "==", "web-*"], true, &file_test), None);
        assert_eq!(status(&["web-1", "==", "web-*"], false, &file_test), Some(1));
    }
}
