//! Why a request is rejected.

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

    // Kubernetes: the texts of its metrics.
    pub(super) fn text(self) -> &'static str {
        match self {
            Rejection::QueueFull => "queue-full",
            Rejection::NoSeat => "concurrency-limit",
            Rejection::TimedOut => "time-out",
            Rejection::Cancelled => "cancelled",
        }
    }
}
