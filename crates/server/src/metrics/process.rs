//! CPU, memory and files of this process, under the names that every Prometheus client uses.

use super::Page;
use std::fs;

/// Linux: the unit of times in `/proc`, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Adds what can be read: nothing on a system without `/proc`.
pub(super) fn write(page: &mut Page) {
    if let Some([cpu, start]) = times() {
        let help = "Total user and system CPU time spent in seconds.";
        page.single("process_cpu_seconds_total", "counter", help, cpu);
        let help = "Start time of the process since unix epoch in seconds.";
        page.single("process_start_time_seconds", "gauge", help, start);
    }
    if let Some([resident, virtual_size]) = memory() {
        page.single("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident);
        page.single("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", virtual_size);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        let help = "Number of open file descriptors.";
        // One of them is that of this listing.
        page.single("process_open_fds", "gauge", help, open.count().saturating_sub(1) as f64);
    }
    if let Some(limit) = open_files_limit() {
        page.single("process_max_fds", "gauge", "Maximum number of open file descriptors.", limit);
    }
}

/// CPU time and start time in seconds.
fn times() -> Option<[f64; 2]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name, may hold anything but ends with the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some([ticks(11)? + ticks(12)?, boot.trim().parse::<f64>().ok()? + ticks(19)?])
}

/// Resident and virtual memory in bytes.
fn memory() -> Option<[f64; 2]> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
    };
    Some([bytes("VmRSS:")?, bytes("VmSize:")?])
}

fn open_files_limit() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
