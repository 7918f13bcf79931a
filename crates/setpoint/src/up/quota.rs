//! The quota of the store: as given, or a share of this machine's memory.

use api::quantity::Quantity;
use std::fs;

/// The largest default.
// Kubernetes: what etcd suggests as its largest quota.
const MOST: u64 = 8 << 30;
/// All of the store is in memory, where requests and watches need space, too.
const SHARE: u64 = 4;
/// What is assumed where the system does not say how much memory there is.
const UNKNOWN: u64 = 2 << 30;

/// A number of bytes, as a Kubernetes quantity: `4Gi`.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let quantity: Quantity = text.parse().map_err(|error| format!("{error}; write it like 4Gi"))?;
    let bytes = quantity.value().and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "it must be more than 0 bytes; write it like 4Gi".to_owned())
}

/// What the store may hold where no flag says.
pub(super) fn default() -> u64 {
    let whole = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    let own = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    share([whole, own])
}

fn share(limits: [Option<u64>; 2]) -> u64 {
    limits.into_iter().flatten().min().map_or(UNKNOWN, |memory| (memory / SHARE).min(MOST))
}

/// From the text of `/proc/meminfo`.
fn total_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_quantities_of_bytes() {
        for (text, expected) in
            [("4Gi", Some(4 << 30)), ("500M", Some(500_000_000)), ("0", None), ("-1", None)]
        {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
        assert!(parse("much").is_err());
    }

    #[test]
    fn the_store_gets_a_quarter_of_the_memory_at_most() {
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       4096 kB\n"), Some(4 << 20));
        for (limits, expected) in [
            ([Some(16 << 30), None], 4 << 30),
            ([Some(16 << 30), Some(2 << 30)], 512 << 20),
            ([Some(1 << 40), None], 8 << 30),
            ([None, None], 2 << 30),
        ] {
            assert_eq!(share(limits), expected);
        }
    }
}
