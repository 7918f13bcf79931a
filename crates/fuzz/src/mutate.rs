//! Mutates seeds into new inputs, with the random numbers of a world.

use world::World;

/// Longer inputs find nothing more, only later.
const MAX_INPUT_BYTES: usize = 16 * 1024;

/// The most changes to a seed at once.
const MAX_CHANGES: u64 = 5;

/// Boundary values.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
    "-0",
    "0.1",
];

/// An input made of one seed, and of a part of others.
pub(crate) fn mutate(world: &World, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = pick(world, seeds).cloned().unwrap_or_default();
    for _ in 0..=world.pick(0..MAX_CHANGES) {
        let other = pick(world, seeds).map(Vec::as_slice).unwrap_or_default();
        change(world, &mut input, other, words);
        input.truncate(MAX_INPUT_BYTES);
    }
    input
}

fn change(world: &World, input: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let at = below(world, input.len() + 1);
    let end = (at + below(world, 1 + (input.len() - at).min(1 << below(world, 8)))).min(input.len());
    match world.pick(0..12) {
        0 if at < input.len() => input[at] ^= 1 << below(world, 8),
        1 if at < input.len() => input[at] = world.draw() as u8,
        2 => input.insert(at, world.draw() as u8),
        3 => drop(input.drain(at..end)),
        4 => {
            let copied = input[at..end].to_vec();
            let to = below(world, input.len() + 1);
            drop(input.splice(to..to, copied));
        }
        5 => {
            let from = below(world, other.len() + 1);
            let part = other[from..].iter().take(1 + below(world, 64)).copied();
            drop(input.splice(at..end, part));
        }
        6 | 7 => {
            if let Some(word) = pick(world, words) {
                let end = if world.chance(0.5) { at } else { end };
                drop(input.splice(at..end, word.bytes()));
            }
        }
        8 | 9 => {
            // Replaces one JSON value by another, of this input or of another: the result is often still
            // JSON.
            let source = if world.chance(0.5) { other.to_vec() } else { input.clone() };
            if let (Some(old), Some(new)) = (value(world, input), value(world, &source)) {
                drop(input.splice(old, source[new].iter().copied()));
            }
        }
        10 => {
            if let (Some(old), Some(number)) = (value(world, input), pick(world, &NUMBERS)) {
                drop(input.splice(old, number.bytes()));
            }
        }
        _ => {
            if let Some(old) = value(world, input) {
                drop(input.splice(old, *b"null"));
            }
        }
    }
}

/// The range of a JSON value, searched from a random place on.
fn value(world: &World, text: &[u8]) -> Option<std::ops::Range<usize>> {
    let from = below(world, text.len());
    let opens = |byte: &u8| matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
    let start = from + text.get(from..)?.iter().position(opens)?;
    let (mut depth, mut quoted) = (0_usize, false);
    let mut bytes = text.iter().enumerate().skip(start);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            _ if quoted => continue,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return Some(start..at),
            b'}' | b']' => depth -= 1,
            b',' | b':' | b' ' | b'\n' if depth == 0 => return Some(start..at),
            _ => continue,
        }
        if depth == 0 && !quoted {
            return Some(start..(at + 1).min(text.len()));
        }
    }
    Some(start..text.len())
}

pub(crate) fn pick<'a, T>(world: &World, from: &'a [T]) -> Option<&'a T> {
    from.get(below(world, from.len()))
}

fn below(world: &World, limit: usize) -> usize {
    world.pick(0..limit as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_most_of_them_differ() {
        let run = |seed| {
            let run = world::simulate(seed, |world| async move {
                let seeds = [br#"{"a": [1, "x"]}"#.to_vec(), b"k: v".to_vec(), Vec::new()];
                (0..100).map(|_| mutate(&world, &seeds, &["null"])).collect::<Vec<_>>()
            });
            run.unwrap().output
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let different: std::collections::BTreeSet<_> = run(1).into_iter().collect();
        assert!(different.len() > 50, "{different:?}");
    }
}
