//! Why a request is sent away, in the words of the metrics.

/// Why somebody is sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    QueueFull,
    NoSeat,
    TimedOut,
    Cancelled,
}

impl Rejection {
    pub(super) const ALL: [Rejection; 4] =
        [Rejection::QueueFull, Rejection::NoSeat, Rejection::TimedOut, Rejection::Cancelled];

    // Kubernetes: as its metrics say it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Rejection::QueueFull => "queue-full",
            Rejection::NoSeat => "concurrency-limit",
            Rejection::TimedOut => "time-out",
            Rejection::Cancelled => "cancelled",
        }
    }
}
