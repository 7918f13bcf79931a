//! Counts the memory that each thread of a test holds, so that a test can limit the cost of a response.
//!
//! In a simulated world everything runs on one thread, so only that test's work is counted.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

struct Counted;

thread_local! {
    /// Bytes allocated here and not freed here.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // A thread that is ending has no counters.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one hands everything on to the system's"
)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The bytes that this thread holds now.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// Limit on what a request may make the server hold: this many times its body, plus an allowance.
const TIMES: usize = 30;
const ALLOWANCE: usize = 128 << 20;
/// Limit on the CPU time of a request. More without optimisations.
const PROCESSOR: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// Memory and CPU time before a request.
pub(crate) struct Meter {
    held: isize,
    worked: Duration,
}

impl Meter {
    pub(crate) fn start() -> Meter {
        MOST.set(HELD.get());
        Meter { held: HELD.get(), worked: processor_time() }
    }

    /// The maximum held since then, in bytes.
    pub(crate) fn most(&self) -> usize {
        usize::try_from(MOST.get() - self.held).unwrap_or(0)
    }

    /// Checks that a request with a body of that size has cost no more than allowed.
    pub(crate) fn assert_modest(&self, body: usize, about: &str) {
        let (most, worked) = (self.most(), processor_time().saturating_sub(self.worked));
        assert!(most <= TIMES * body + ALLOWANCE, "{about}: {most} bytes for a body of {body}");
        assert!(worked <= PROCESSOR, "{about}: {worked:?} of a processor for a body of {body} bytes");
    }
}

/// The CPU time of this thread.
#[expect(unsafe_code, reason = "the system call writes to what it is handed")]
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(code, 0, "the clock of the thread can be read");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
