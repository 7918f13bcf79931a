//! Waits until a cluster has nothing left to do at the present moment of its clock: on a thread of its own, since this happens
//! at every timer of an advance.

use crate::{Cluster, transport::OutsideProgress};
use std::{thread, time::Duration};
use world::Moment;

/// How long between two looks.
const LOOK: Duration = Duration::from_micros(20);
/// With no task to run and no request under way for so long, the cluster rests, even if threads of the process work for others.
const STILL: Duration = Duration::from_millis(2);
/// A request without a task waits for a disk, for another process, or for the clock. It gets so long.
const PATIENCE: Duration = Duration::from_millis(20);
/// A cluster that works longer than this at one moment does so for ever.
const LONGEST: Duration = Duration::from_secs(20);

/// Waits until nothing happens. `false` if it never does.
pub(crate) fn rest(cluster: &Cluster) -> bool {
    let begun = cluster.real.now();
    let mut still: Option<Moment> = None;
    while cluster.real.now().since(begun) < LONGEST {
        let (is_still, has_requests) =
            (cluster.clock.active_tasks() == 0, cluster.transport.pending.has_requests());
        if is_still && !has_requests && cluster.real.do_threads_wait() {
            return true;
        }
        if is_still {
            let since = *still.get_or_insert_with(|| cluster.real.now());
            let enough = if has_requests { PATIENCE } else { STILL };
            if cluster.real.now().since(since) >= enough {
                return true;
            }
        } else {
            still = None;
        }
        thread::park_timeout(LOOK);
    }
    false
}

/// If clients in other processes have been told something since `before`, waits until they have had `quiet` to react.
pub(crate) fn rest_outside(cluster: &Cluster, before: &mut OutsideProgress, quiet: Duration) -> bool {
    let mut now = cluster.transport.pending.outside();
    while now != *before {
        *before = now;
        let begun = cluster.real.now();
        while cluster.real.now().since(begun) < quiet {
            thread::park_timeout(LOOK);
        }
        if !rest(cluster) {
            return false;
        }
        now = cluster.transport.pending.outside();
    }
    true
}
