//! Finds the first byte that ends a run, many bytes at a time.

/// This many bytes are checked at once, with one instruction for each comparison; a stride that contains the
/// end is then checked in steps of this many.
const STRIDE: usize = 32;
const STEP: usize = 8;

/// The length of the run. `stops` is fastest if it consists of comparisons only, without branches.
#[inline]
pub(crate) fn length(bytes: &[u8], stops: impl Fn(u8) -> bool) -> usize {
    let mut clean = clean::<STRIDE>(bytes, &stops);
    clean += self::clean::<STEP>(&bytes[clean..], &stops);
    let rest = &bytes[clean..];
    clean + rest.iter().position(|byte| stops(*byte)).unwrap_or(rest.len())
}

/// The length of the run in whole strides.
#[inline]
fn clean<const STRIDE: usize>(bytes: &[u8], stops: impl Fn(u8) -> bool) -> usize {
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    let is_clean =
        |stride: &&[u8; STRIDE]| stride.iter().fold(0, |found, byte| found | u8::from(stops(*byte))) == 0;
    strides.iter().take_while(is_clean).count() * STRIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_the_first_stop() {
        for length_before in [0, 1, 31, 32, 33, 63, 64, 100] {
            for after in ["", "!", "!!", "!x!", "!xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"] {
                let text = "x".repeat(length_before) + after;
                assert_eq!(length(text.as_bytes(), |byte| byte == b'!'), length_before, "{text}");
            }
        }
    }
}
