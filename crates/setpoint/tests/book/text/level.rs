//! Text of a terminal with everything levelled that differs from run to run: ages, names, addresses, times, numbers.

/// Kubernetes: the letters and digits of generated names.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Where the hyphens of a UID are.
const UID_HYPHENS: [usize; 4] = [8, 13, 18, 23];
const UID_LENGTH: usize = 36;
/// `2026-11-18T20:11:19Z`, where `0` stands for a digit.
const TIME: &str = "0000-00-00T00:00:00";
/// kubectl before 1.34 prints this of no deleted object.
const NAMESPACE_OF_DELETED: &str = " from default namespace";
/// Shorter numbers count: replicas, generations, restarts.
const LONG_NUMBER: usize = 3;

/// A line, with one space between words.
pub(crate) fn level(line: &str) -> String {
    let mut levelled = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let before = levelled.chars().next_back();
        let (word, length) = if let Some(length) = time(rest) {
            ("TIME".to_owned(), length)
        } else if let Some(length) = uid(rest) {
            ("UID".to_owned(), length)
        } else if let Some(length) = address(rest) {
            ("ADDRESS".to_owned(), length)
        } else if first.is_ascii_alphanumeric() {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
            (word(&rest[..end], before), end)
        } else {
            (first.to_string(), first.len_utf8())
        };
        levelled.push_str(&word);
        rest = &rest[length..];
    }
    let words = levelled.split_whitespace().collect::<Vec<_>>().join(" ");
    words.strip_suffix(NAMESPACE_OF_DELETED).unwrap_or(&words).to_owned()
}

fn word(text: &str, before: Option<char>) -> String {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_generated = before == Some('-') && text.chars().all(|letter| GENERATED.contains(letter));
    let is_hash = text.len() >= 8 && digits > 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() {
        _ if is_age(text) => "AGE".to_owned(),
        length if digits == length && length >= LONG_NUMBER => "NUMBER".to_owned(),
        5 | 8..=10 if is_generated => "GENERATED".to_owned(),
        _ if is_hash => "GENERATED".to_owned(),
        _ => text.to_owned(),
    }
}

/// `5s`, `2m3s`, `4d`.
fn is_age(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.split_inclusive(['d', 'h', 'm', 's']).all(|part| {
            let number = part.strip_suffix(['d', 'h', 'm', 's']).unwrap_or("none");
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

fn time(text: &str) -> Option<usize> {
    let head = text.get(..TIME.len())?;
    let fits = |(is, should): (u8, u8)| if should == b'0' { is.is_ascii_digit() } else { is == should };
    head.bytes().zip(TIME.bytes()).all(fits).then_some(())?;
    let fraction = text[TIME.len()..].find(|letter: char| letter != '.' && !letter.is_ascii_digit());
    Some(TIME.len() + fraction.unwrap_or_default())
}

fn uid(text: &str) -> Option<usize> {
    let head = text.get(..UID_LENGTH)?;
    let fits = |(at, byte): (usize, u8)| match UID_HYPHENS.contains(&at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    head.bytes().enumerate().all(fits).then_some(UID_LENGTH)
}

/// An IPv4 address.
fn address(text: &str) -> Option<usize> {
    let end = text.find(|letter: char| letter != '.' && !letter.is_ascii_digit()).unwrap_or(text.len());
    let head = text[..end].trim_end_matches('.');
    let parts: Vec<_> = head.split('.').collect();
    (parts.len() == 4 && parts.iter().all(|part| (1..=3).contains(&part.len()))).then_some(head.len())
}

/// Whether lines are as a page shows them; `…` stands for anything in a line, and alone for any lines.
pub(crate) fn fits(shown: &[String], found: &[String]) -> bool {
    match (shown, found) {
        ([first, more @ ..], _) if first == "…" => {
            (0..=found.len()).any(|skipped| fits(more, &found[skipped..]))
        }
        ([first, more @ ..], [line, others @ ..]) => line_fits(first, line) && fits(more, others),
        _ => shown.is_empty() && found.is_empty(),
    }
}

fn line_fits(shown: &str, found: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|start| found.strip_prefix(start)) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn what_differs_from_run_to_run_is_levelled() {
    for (line, expected) in [
        ("web-c4997f8f4-b4bk2   1/1     Running   0     71s", "web-GENERATED-GENERATED 1/1 Running 0 AGE"),
        ("web-7d576bf66b   2   2   2   10m5s", "web-GENERATED 2 2 2 AGE"),
        ("10.244.0.4 node-0 v1.36.0", "ADDRESS node-0 v1.36.0"),
        ("https://127.0.0.1:6443", "https://ADDRESS:NUMBER"),
        ("uid: 0c9e2f6e-1111-4222-8333-444455556666", "uid: UID"),
        ("at 2026-11-18T20:11:19.123456Z, 2026-11-18T20:11:19Z", "at TIMEZ, TIMEZ"),
        ("resourceVersion 412, generation 2", "resourceVersion NUMBER, generation 2"),
        ("deployment.apps/web created", "deployment.apps/web created"),
        ("kube-root-ca.crt", "kube-root-ca.crt"),
        ("configmap \"a\" deleted from default namespace", "configmap \"a\" deleted"),
    ] {
        assert_eq!(level(line), expected, "{line}");
    }
}

#[test]
fn an_ellipsis_stands_for_any_text_and_any_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (shown, found, expected) in [
        ("a\nb", "a\nb", true),
        ("a", "a\nb", false),
        ("a\n…", "a\nb\nc", true),
        ("…\nc", "a\nb\nc", true),
        ("…\nd", "a\nb\nc", false),
        ("a … c", "a b c", true),
        ("a … c", "a b d", false),
        ("why: …", "why: x", true),
        ("", "", true),
        ("a", "", false),
    ] {
        assert_eq!(fits(&lines(shown), &lines(found)), expected, "{shown:?} {found:?}");
    }
}
