//! Counts the memory that each thread of a test holds, so that a test can say what an answer may cost.
//!
//! In a simulated world everything happens on one thread, so what is counted is the work of that test and of
//! nothing that runs beside it.

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
    // A thread that is ending has no more counters.
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

/// What this thread holds now, in bytes.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// What a request may make the server hold at once: so many times its body, and this on top.
const TIMES: usize = 30;
const ALLOWANCE: usize = 128 << 20;
/// And for how long it may keep a processor. Without optimisations everything takes longer.
const PROCESSOR: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// What was held and worked before a request came.
pub(crate) struct Meter {
    held: isize,
    worked: Duration,
}

impl Meter {
    pub(crate) fn start() -> Meter {
        MOST.set(HELD.get());
        Meter { held: HELD.get(), worked: processor_time() }
    }

    /// The most that was held at once since then, in bytes.
    pub(crate) fn most(&self) -> usize {
        usize::try_from(MOST.get() - self.held).unwrap_or(0)
    }

    /// Whether a request with a body of so many bytes has cost no more than one may.
    pub(crate) fn assert_modest(&self, body: usize, about: &str) {
        let (most, worked) = (self.most(), processor_time().saturating_sub(self.worked));
        assert!(most <= TIMES * body + ALLOWANCE, "{about}: {most} bytes for a body of {body}");
        assert!(worked <= PROCESSOR, "{about}: {worked:?} of a processor for a body of {body} bytes");
    }
}

/// The processor time that this thread has had.
#[expect(unsafe_code, reason = "the system call writes to what it is handed")]
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is there to be written to.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(code, 0, "the clock of the thread can be read");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
