//! The number of seats of a request: one, unless it reads much or many watches get its event.

use std::time::Duration;

/// The seats of a request, and for how long after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Width {
    pub(super) seats: u32,
    /// Seats held after its end, while watch events are sent.
    pub(super) after: u32,
    pub(super) lingering: Duration,
}

/// The objects that a list reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListExtent {
    pub(super) objects: u64,
    /// Average size of an object, in bytes.
    pub(super) size: u64,
}

/// How a list reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// One object by name.
    pub(super) is_single: bool,
    /// At the latest or at any revision; not at an exact one.
    pub(super) is_latest: bool,
    pub(super) is_selective: bool,
    pub(super) limit: u64,
}

/// Bytes that a list holds in memory per seat.
// Kubernetes: bytesPerSeat; likewise for the constants below.
const BYTES_PER_SEAT: u64 = 100_000;
/// Bytes that a list at the latest revision holds at once: it is streamed.
const STREAMED_BYTES: u64 = 1_000_000;
const MAX_LIST_SEATS: u32 = 100;
const MAX_WRITE_SEATS: u32 = 10;
const WATCHES_PER_SEAT: u64 = 10;
/// The time to send events to that many watches.
const SENDING: Duration = Duration::from_millis(5);

impl Width {
    pub(super) const ONE: Width = Width { seats: 1, after: 0, lingering: Duration::ZERO };

    /// The seats that must be free for it.
    pub(super) fn most(&self) -> u32 {
        self.seats.max(self.after)
    }

    /// For a list, or a watch that begins with one.
    pub(super) fn list(extent: ListExtent, reading: Reading, widest: Option<u32>) -> Width {
        let objects = if reading.limit > 0 { extent.objects.min(reading.limit) } else { extent.objects };
        let held = match reading {
            Reading { is_single: true, .. } => 1,
            Reading { is_latest: false, is_selective: true, .. } => objects.max(extent.objects / 2),
            _ => objects,
        };
        let bytes = held.saturating_mul(extent.size);
        let bytes = if reading.is_latest { bytes.min(STREAMED_BYTES) } else { bytes };
        let seats = u32::try_from(bytes.div_ceil(BYTES_PER_SEAT)).unwrap_or(u32::MAX);
        let most = widest.unwrap_or(MAX_LIST_SEATS).min(MAX_LIST_SEATS);
        Width { seats: seats.clamp(1, most.max(1)), ..Width::ONE }
    }

    /// For a write with that many watch events.
    pub(super) fn write(watches: u64, widest: Option<u32>) -> Width {
        if watches < WATCHES_PER_SEAT {
            return Width::ONE;
        }
        let wanted = u32::try_from(watches.div_ceil(WATCHES_PER_SEAT)).unwrap_or(u32::MAX);
        let after = wanted.min(widest.unwrap_or(MAX_WRITE_SEATS)).clamp(1, MAX_WRITE_SEATS);
        // Fewer seats linger longer: the work is the same.
        Width { seats: 1, after, lingering: SENDING * wanted / after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_seats_by_the_bytes_they_hold() {
        let latest = Reading { is_latest: true, ..Reading::default() };
        let exact = Reading::default();
        for (name, objects, size, reading, widest, expected) in [
            ("nothing", 0, 0, latest, None, 1),
            ("a little", 100, 1000, latest, None, 1),
            ("a little more", 101, 1000, latest, None, 2),
            ("streamed", 1_000_000, 1000, latest, None, 10),
            ("a page", 1_000_000, 1000, Reading { limit: 500, ..latest }, None, 5),
            ("by name", 1_000_000, 1000, Reading { is_single: true, ..latest }, None, 1),
            ("of a revision", 2500, 1000, exact, None, 25),
            ("no wider than all", 1_000_000, 1000, exact, None, 100),
            ("no wider than its level allows", 1_000_000, 1000, exact, Some(8), 8),
            ("selected", 5000, 1000, Reading { limit: 10, is_selective: true, ..exact }, None, 25),
        ] {
            assert_eq!(Width::list(ListExtent { objects, size }, reading, widest).most(), expected, "{name}");
        }
    }

    #[test]
    fn writes_linger_while_watch_events_are_sent() {
        for (watches, widest, expected) in [
            (0, None, (0, 0)),
            (9, None, (0, 0)),
            (10, None, (1, 5)),
            (25, None, (3, 5)),
            (1000, None, (10, 50)),
            (1000, Some(4), (4, 125)),
        ] {
            let width = Width::write(watches, widest);
            assert_eq!((width.after, width.lingering.as_millis()), expected, "{watches} {widest:?}");
        }
    }
}
