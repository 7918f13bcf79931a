//! Code coverage of the inputs so far, where the compiler added counters.
//!
//! `cargo xtask fuzz` builds with counters in every branch (LLVM's `sancov-module`); other builds have none,
//! and no input ever reaches new code.

use std::sync::Mutex;

/// The counters of one object file.
struct Counters {
    start: *mut u8,
    len: usize,
}

#[expect(unsafe_code, reason = "the counters are statics that every thread may write")]
// SAFETY: a pointer to a static; each place that reads through it says why that is sound.
unsafe impl Send for Counters {}

static COUNTERS: Mutex<Vec<Counters>> = Mutex::new(Vec::new());

/// Called once for each object file before `main`, by code that the compiler adds.
#[expect(unsafe_code, reason = "the name and form are LLVM's")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let len = (stop as usize).saturating_sub(start as usize);
    if let Ok(mut counters) = COUNTERS.lock() {
        counters.push(Counters { start, len });
    }
}

/// The code reached, and roughly how often.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// For each counter the magnitudes that it has had, a bit for each power of two.
    seen: Vec<u8>,
}

impl Reached {
    /// Whether the code that ran since [`clear`] reached something new. Records it.
    pub(crate) fn is_new(&mut self) -> bool {
        let mut new = false;
        let mut at = 0;
        each(|counters| {
            if self.seen.len() < at + counters.len() {
                self.seen.resize(at + counters.len(), 0);
            }
            // Most code is never reached: skip eight zero counters at once.
            for (nth, eight) in counters.chunks(8).enumerate().filter(|(_, eight)| **eight != [0; 8]) {
                let seen = &mut self.seen[at + nth * 8..];
                for (seen, count) in seen.iter_mut().zip(eight).filter(|(_, count)| **count != 0) {
                    let bit = 1 << count.ilog2();
                    new |= *seen & bit == 0;
                    *seen |= bit;
                }
            }
            at += counters.len();
        });
        new
    }

    /// How many branches were ever reached.
    pub(crate) fn branches(&self) -> usize {
        self.seen.iter().filter(|seen| **seen != 0).count()
    }
}

pub(crate) fn clear() {
    each(|counters| counters.fill(0));
}

fn each(mut act: impl FnMut(&mut [u8])) {
    let Ok(counters) = COUNTERS.lock() else { return };
    for Counters { start, len } in counters.iter() {
        #[expect(unsafe_code, reason = "the counters are statics of other object files")]
        // SAFETY: LLVM hands over the bounds of an array of bytes that lives as long as the program. Code that runs
        // meanwhile may add to a counter; a count that is off by one does no harm.
        act(unsafe { std::slice::from_raw_parts_mut(*start, *len) });
    }
}
