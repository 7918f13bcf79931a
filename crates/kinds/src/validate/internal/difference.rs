//! Two texts of JSON in, what changed from one to the other out: indented and compared line by line, as Go's
//! `difflib` does it.

use std::collections::BTreeMap;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// A longer difference is not readable, and takes long to compute.
const MAX_LINES: usize = 10_000;
/// Lines that are looked at while the longest runs are searched for: of texts that have little in common, the rest is
/// shown as changed.
const MAX_LOOKS: usize = 200_000;
/// Kubernetes: in a long text, lines that come too often tell nothing.
const LONG: usize = 200;

/// Lines `from.0..from.1` of the old text become lines `to.0..to.1` of the new one.
#[derive(Clone, Copy, Debug)]
struct Step {
    is_same: bool,
    from: (usize, usize),
    to: (usize, usize),
}

/// A unified diff, without the names of files.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new) = (indented(old), indented(new));
    if old.len().max(new.len()) > MAX_LINES {
        return String::new();
    }
    let mut out = String::new();
    for hunk in hunks(steps(&old, &new)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let (from, to) = (range(first.from.0, last.from.1), range(first.to.0, last.to.1));
        out.push_str(&format!("@@ -{from} +{to} @@\n"));
        for step in &hunk {
            let mut write = |sign: char, lines: &[String]| {
                lines.iter().for_each(|line| out.push_str(&format!("{sign}{line}\n")));
            };
            if step.is_same {
                write(' ', &old[step.from.0..step.from.1]);
            } else {
                write('-', &old[step.from.0..step.from.1]);
                write('+', &new[step.to.0..step.to.1]);
            }
        }
    }
    out
}

/// `json.MarshalIndent` with one space.
fn indented(json: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let mut letters = json.chars().peekable();
    let start = |depth: usize| " ".repeat(depth);
    while let Some(letter) = letters.next() {
        let closes_at_once = matches!(letters.peek(), Some('}' | ']'));
        match letter {
            _ if in_text => {
                in_text = is_escaped || letter != '"';
                is_escaped = letter == '\\' && !is_escaped;
                push(&mut lines, letter);
            }
            '{' | '[' if closes_at_once => {
                push(&mut lines, letter);
                letters.next().into_iter().for_each(|close| push(&mut lines, close));
            }
            '{' | '[' => {
                depth += 1;
                push(&mut lines, letter);
                lines.push(start(depth));
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                lines.push(start(depth));
                push(&mut lines, letter);
            }
            ',' => {
                push(&mut lines, letter);
                lines.push(start(depth));
            }
            ':' => {
                push(&mut lines, letter);
                push(&mut lines, ' ');
            }
            _ => {
                in_text = letter == '"';
                push(&mut lines, letter);
            }
        }
    }
    lines
}

fn push(lines: &mut [String], letter: char) {
    if let Some(line) = lines.last_mut() {
        line.push(letter);
    }
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

/// Changes with what is around them; those that are close to each other together.
fn hunks(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(first) = steps.first_mut().filter(|step| step.is_same) {
        *first = tail(*first);
    }
    if let Some(last) = steps.last_mut().filter(|step| step.is_same) {
        *last = head(*last);
    }
    let (mut hunks, mut hunk) = (Vec::new(), Vec::new());
    for mut step in steps {
        if step.is_same && step.from.1 - step.from.0 > 2 * CONTEXT {
            hunk.push(head(step));
            hunks.push(std::mem::take(&mut hunk));
            step = tail(step);
        }
        hunk.push(step);
    }
    hunks.push(hunk);
    hunks.retain(|hunk| hunk.iter().any(|step| !step.is_same));
    hunks
}

fn head(step: Step) -> Step {
    let end = |(start, end): (usize, usize)| (start, end.min(start + CONTEXT));
    Step { from: end(step.from), to: end(step.to), ..step }
}

fn tail(step: Step) -> Step {
    let start = |(start, end): (usize, usize)| (start.max(end.saturating_sub(CONTEXT)), end);
    Step { from: start(step.from), to: start(step.to), ..step }
}

fn steps(old: &[String], new: &[String]) -> Vec<Step> {
    let (mut steps, mut at) = (Vec::new(), (0, 0));
    for (from, to, length) in matches(old, new).into_iter().chain([(old.len(), new.len(), 0)]) {
        if at != (from, to) {
            steps.push(Step { is_same: false, from: (at.0, from), to: (at.1, to) });
        }
        at = (from + length, to + length);
        if length > 0 {
            steps.push(Step { is_same: true, from: (from, at.0), to: (to, at.1) });
        }
    }
    steps
}

/// Where the texts agree: the longest run of lines, then the longest before and after it, and so on.
fn matches(old: &[String], new: &[String]) -> Vec<(usize, usize, usize)> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if new.len() >= LONG {
        places.retain(|_, at| at.len() <= new.len() / 100 + 1);
    }
    let mut found = Vec::new();
    let mut rest = vec![((0, old.len()), (0, new.len()))];
    let mut looks = 0;
    while let Some((within, of)) = rest.pop() {
        looks += within.1 - within.0;
        if looks > MAX_LOOKS {
            break;
        }
        let (from, to, length) = longest(old, new, &places, within, of);
        if length > 0 {
            found.push((from, to, length));
            rest.push(((within.0, from), (of.0, to)));
            rest.push(((from + length, within.1), (to + length, of.1)));
        }
    }
    found.sort_unstable();
    let mut joined: Vec<(usize, usize, usize)> = Vec::new();
    for (from, to, length) in found {
        match joined.last_mut() {
            Some(last) if (last.0 + last.2, last.1 + last.2) == (from, to) => last.2 += length,
            _ => joined.push((from, to, length)),
        }
    }
    joined
}

fn longest(
    old: &[String],
    new: &[String],
    places: &BTreeMap<&str, Vec<usize>>,
    within: (usize, usize),
    of: (usize, usize),
) -> (usize, usize, usize) {
    let (mut from, mut to, mut length) = (within.0, of.0, 0);
    let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, line) in old.iter().enumerate().take(within.1).skip(within.0) {
        let mut longer = BTreeMap::new();
        let found = places.get(line.as_str()).into_iter().flatten();
        for place in found.copied().filter(|place| (of.0..of.1).contains(place)) {
            let before = place.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or(0);
            let run = before + 1;
            longer.insert(place, run);
            if run > length {
                (from, to, length) = (at + 1 - run, place + 1 - run, run);
            }
        }
        runs = longer;
    }
    while from > within.0 && to > of.0 && old[from - 1] == new[to - 1] {
        (from, to, length) = (from - 1, to - 1, length + 1);
    }
    while from + length < within.1 && to + length < of.1 && old[from + length] == new[to + length] {
        length += 1;
    }
    (from, to, length)
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        for (old, new, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, ""),
            (
                r#"{"a":1}"#,
                r#"{"a":[],"b":"x, \"y\": {"}"#,
                "@@ -1,3 +1,4 @@\n {\n- \"a\": 1\n+ \"a\": [],\n+ \"b\": \"x, \\\"y\\\": {\"\n }\n",
            ),
            (
                r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0}"#,
                r#"{"a":0,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":1}"#,
                "@@ -1,5 +1,5 @@\n {\n- \"a\": 1,\n+ \"a\": 0,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4,\n@@ -8,5 +8,5 @@\n  \
                 \"g\": 7,\n  \"h\": 8,\n  \"i\": 9,\n- \"j\": 0\n+ \"j\": 1\n }\n",
            ),
        ] {
            assert_eq!(unified(old, new), expected);
        }
    }
}
