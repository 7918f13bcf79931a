//! Which reconciles get a line in the log: all when there are few, the first of each second when there are many.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use world::{Moment, World};

/// Enough to follow a few objects; a thousand reconciles a second would hide everything else.
const LINES_PER_SECOND: u32 = 10;

/// Admits the first few lines of each second.
#[derive(Debug)]
pub(super) struct SampledLog {
    world: World,
    second: Mutex<Second>,
}

#[derive(Debug)]
struct Second {
    begun: Moment,
    lines: u32,
    left_out: u64,
}

impl SampledLog {
    pub(super) fn new(world: &World) -> SampledLog {
        let second = Second { begun: world.now(), lines: 0, left_out: 0 };
        SampledLog { world: world.clone(), second: Mutex::new(second) }
    }

    /// How many lines were left out before this one, or `None` if it is left out too.
    pub(super) fn admit(&self) -> Option<u64> {
        let now = self.world.now();
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(second.begun) >= Duration::from_secs(1) {
            (second.begun, second.lines) = (now, 0);
        }
        if second.lines >= LINES_PER_SECOND {
            second.left_out += 1;
            return None;
        }
        second.lines += 1;
        Some(std::mem::take(&mut second.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_of_each_second_are_admitted() {
        let run = world::simulate(1, |world| async move {
            let log = SampledLog::new(&world);
            let mut admitted = Vec::new();
            for reconciles in [3, 25, 1, 12] {
                let lines: Vec<Option<u64>> = (0..reconciles).map(|_| log.admit()).collect();
                admitted.push((lines.iter().flatten().count(), lines[0]));
                world.sleep(Duration::from_secs(1)).await;
            }
            admitted
        });
        let expected = [(3, Some(0)), (10, Some(0)), (1, Some(15)), (10, Some(0))];
        assert_eq!(run.unwrap().output, expected);
    }
}
