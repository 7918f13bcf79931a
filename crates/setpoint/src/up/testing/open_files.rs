//! The limit of open files: each fork has a socket, and many systems allow a program 1,024 files unless it asks for more.

/// Raises the limit of this process as far as the system lets it. If it does not, fewer forks are possible.
#[expect(unsafe_code, reason = "the standard library does not know these limits")]
pub(super) fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a valid pointer to a limit, and keep none.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
