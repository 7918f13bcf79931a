//! Random numbers: from the operating system in the real world, from the seed in a simulated one.

use crate::{Kind, World};
use std::{ops::Range, time::Duration};

/// The letters of generated name suffixes.
// Kubernetes: no vowels and no look-alike characters, so that no suffix is a word.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;

/// As long as a private key of Ed25519.
const SEEDED_KEY_LENGTH: usize = 32;

const UID_LENGTH: usize = 36;
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

impl World {
    pub fn draw(&self) -> u64 {
        match &self.0 {
            Kind::Real(_) | Kind::Steered(..) => {
                getrandom::u64().expect("the operating system gives random numbers")
            }
            Kind::Simulated(simulation) => simulation.draw(),
        }
    }

    /// A uniform number in `range`. An empty range gives its start.
    pub fn pick(&self, range: Range<u64>) -> u64 {
        let width = range.end.saturating_sub(range.start);
        range.start + scale(self.draw(), width)
    }

    /// True with probability `share`, between 0 and 1.
    pub fn chance(&self, share: f64) -> bool {
        self.unit() < share
    }

    /// `base` plus up to `share` of it, so that many waiting tasks do not wake at once.
    pub fn jitter(&self, base: Duration, share: f64) -> Duration {
        base + base.mul_f64(share.max(0.0) * self.unit())
    }

    /// A random (version 4) UUID in its usual text form.
    pub fn uid(&self) -> String {
        let bits = self.draw_wide();
        let bits = bits & !(0xf << 76) | (0x4 << 76); // version 4
        let bits = bits & !(0x3 << 62) | (0x2 << 62); // the RFC 9562 variant
        let mut text = String::with_capacity(UID_LENGTH);
        for (at, byte) in bits.to_be_bytes().into_iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 0xf] {
                text.push(char::from(HEX_DIGITS[usize::from(digit)]));
            }
        }
        text
    }

    /// Two draws in one system call.
    #[expect(clippy::disallowed_methods, reason = "this is where chance comes from")]
    fn draw_wide(&self) -> u128 {
        match &self.0 {
            Kind::Real(_) | Kind::Steered(..) => {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
                u128::from_ne_bytes(bytes)
            }
            Kind::Simulated(simulation) => {
                (u128::from(simulation.draw()) << 64) | u128::from(simulation.draw())
            }
        }
    }

    /// The seed; `None` in the real world.
    pub fn seed(&self) -> Option<u64> {
        match &self.0 {
            Kind::Real(_) | Kind::Steered(..) => None,
            Kind::Simulated(simulation) => Some(simulation.seed()),
        }
    }

    /// Bytes of the seed for a private key, so that certificates are the same in every run. `None` in the
    /// real world: there, cryptographic libraries make keys.
    pub fn seeded_key(&self) -> Option<[u8; SEEDED_KEY_LENGTH]> {
        self.seed()?;
        let mut key = [0; SEEDED_KEY_LENGTH];
        for part in key.chunks_exact_mut(size_of::<u64>()) {
            part.copy_from_slice(&self.draw().to_be_bytes());
        }
        Some(key)
    }

    /// The suffix for a `generateName`.
    pub fn name_suffix(&self) -> String {
        let letter = || SUFFIX_LETTERS[self.pick(0..SUFFIX_LETTERS.len() as u64) as usize];
        (0..SUFFIX_LENGTH).map(|_| char::from(letter())).collect()
    }

    /// A number from 0 up to, but excluding, 1.
    fn unit(&self) -> f64 {
        const PRECISE_BITS: u32 = 53;
        (self.draw() >> (64 - PRECISE_BITS)) as f64 / (1u64 << PRECISE_BITS) as f64
    }
}

/// Maps a draw over all of `u64` to `0..width`.
pub(crate) fn scale(draw: u64, width: u64) -> u64 {
    ((u128::from(draw) * u128::from(width)) >> 64) as u64
}

/// A small seeded generator (SplitMix64): every draw moves a counter and mixes it.
#[derive(Debug)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
