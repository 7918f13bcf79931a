//! Every target for a moment, the same inputs each time. At length: `cargo xtask fuzz TARGET --minutes N`.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use fuzz::{Budget, Search, TARGETS, clock, target};
use std::time::Duration;

/// Long enough to try the seeds, and some hundreds of inputs like them.
const MOMENT: Duration = Duration::from_millis(800);

fn holds(name: &str) {
    let target = target(name).unwrap();
    let outcome = Search::new(target).run(&clock().unwrap(), 1, Budget::Time(MOMENT));
    let broken = outcome.err().map(|found| format!("{}\n  {}", found.input.escape_ascii(), found.complaint));
    assert_eq!(broken, None);
}

macro_rules! each_for_a_moment {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*

        #[test]
        fn no_target_is_left_out() {
            assert_eq!([$(stringify!($name)),*].as_slice(), TARGETS.iter().map(|it| it.name).collect::<Vec<_>>());
        }
    };
}

each_for_a_moment! {
    url token token_file access matching requests continue_token label_selector field_selector quantity time json yaml protobuf
    json_patch merge_patch strategic_patch apply field_set structural cel
}
