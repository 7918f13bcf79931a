//! The page, compared with what controller-runtime writes.

use super::*;
use crate::{
    Key,
    queue::{Pace, Queue, Reason},
};
use std::time::Duration;

#[test]
fn a_controller_has_the_metrics_of_controller_runtime() {
    let page = world::simulate(1, |world| async move {
        let metrics = Metrics::default();
        let queue = Queue::new(world.clone(), Pace::default());
        metrics.watch_queue("shop", &queue);
        let reconciles = metrics.reconciles("shop", 2);
        for (name, reason) in [("a", Reason::Changed), ("b", Reason::Changed), ("c", Reason::Resync)] {
            queue.add(&Key::parse(name), reason);
        }
        queue.add_after(&Key::parse("d"), Reason::Asked, Duration::from_secs(60));
        let taken = queue.take().await.expect("open");
        let timer = reconciles.start(taken.waited());
        world.sleep(Duration::from_secs(3)).await;
        for label in [
            ResultLabel::Success,
            ResultLabel::RequeueAfter,
            ResultLabel::Requeue,
            ResultLabel::Error,
            ResultLabel::Terminal,
            ResultLabel::Panic,
            ResultLabel::Timeout,
        ] {
            reconciles.start(Duration::ZERO).stop(Duration::from_millis(30), label);
        }
        let page = metrics.render();
        drop(timer);
        assert!(metrics.render().contains("active_workers{controller=\"shop\"} 0\n"));
        page
    })
    .expect("no task waits for ever")
    .output;
    let samples: Vec<_> =
        page.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket")).collect();
    let expected = r#"controller_runtime_active_workers{controller="shop"} 1
controller_runtime_max_concurrent_reconciles{controller="shop"} 2
controller_runtime_reconcile_errors_total{controller="shop"} 4
controller_runtime_reconcile_panics_total{controller="shop"} 1
controller_runtime_reconcile_time_seconds_sum{controller="shop"} 0.21
controller_runtime_reconcile_time_seconds_count{controller="shop"} 7
controller_runtime_reconcile_timeouts_total{controller="shop"} 1
controller_runtime_reconcile_total{controller="shop",result="error"} 4
controller_runtime_reconcile_total{controller="shop",result="requeue"} 1
controller_runtime_reconcile_total{controller="shop",result="requeue_after"} 1
controller_runtime_reconcile_total{controller="shop",result="success"} 1
controller_runtime_terminal_reconcile_errors_total{controller="shop"} 1
workqueue_adds_total{controller="shop",name="shop"} 3
workqueue_depth{controller="shop",name="shop",priority="-100"} 1
workqueue_depth{controller="shop",name="shop",priority="0"} 1
workqueue_longest_running_processor_seconds{controller="shop",name="shop"} 3
workqueue_queue_duration_seconds_sum{controller="shop",name="shop"} 0
workqueue_queue_duration_seconds_count{controller="shop",name="shop"} 8
workqueue_retries_total{controller="shop",name="shop"} 1
workqueue_unfinished_work_seconds{controller="shop",name="shop"} 3
workqueue_work_duration_seconds_sum{controller="shop",name="shop"} 0.21
workqueue_work_duration_seconds_count{controller="shop",name="shop"} 7"#;
    assert_eq!(samples.join("\n"), expected);
    let types: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let expected = [
        "controller_runtime_active_workers gauge",
        "controller_runtime_max_concurrent_reconciles gauge",
        "controller_runtime_reconcile_errors_total counter",
        "controller_runtime_reconcile_panics_total counter",
        "controller_runtime_reconcile_time_seconds histogram",
        "controller_runtime_reconcile_timeouts_total counter",
        "controller_runtime_reconcile_total counter",
        "controller_runtime_terminal_reconcile_errors_total counter",
        "workqueue_adds_total counter",
        "workqueue_depth gauge",
        "workqueue_longest_running_processor_seconds gauge",
        "workqueue_queue_duration_seconds histogram",
        "workqueue_retries_total counter",
        "workqueue_unfinished_work_seconds gauge",
        "workqueue_work_duration_seconds histogram",
    ];
    assert_eq!(types, expected);
}

#[test]
fn bounds_have_the_digits_of_go() {
    let metrics = Metrics::default();
    metrics.reconciles("shop", 1);
    let page = metrics.render();
    let bounds = |family: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| line.starts_with(&format!("{family}_bucket")));
        lines.filter_map(|line| Some(line.split("le=\"").nth(1)?.split('"').next()?.to_owned())).collect()
    };
    let expected = [
        "1e-08",
        "1e-07",
        "1e-06",
        "9.999999999999999e-06",
        "9.999999999999999e-05",
        "0.001",
        "0.01",
        "0.1",
        "1",
        "10",
        "100",
        "1000",
        "+Inf",
    ];
    assert_eq!(bounds("workqueue_queue_duration_seconds"), expected);
    let times = bounds("controller_runtime_reconcile_time_seconds");
    assert_eq!((times.len(), times[0].as_str(), times[39].as_str()), (41, "0.005", "60"));
}

#[test]
fn a_label_with_too_many_values_does_not_make_the_page_grow() {
    let metrics = Metrics::default();
    for user in 0..MAX_SERIES + 10 {
        metrics.counter("visits_total", "Visits.", &[("user", &user.to_string())]).add(1);
    }
    // Another type under the same name: counted, but not shown.
    metrics.gauge("visits_total", "Visits.", &[]).set(1.0);
    assert_eq!(metrics.render().lines().count(), MAX_SERIES + 2);
}

#[test]
fn holding_the_lease_is_a_gauge() {
    let metrics = Metrics::default();
    for (leads, shown) in [(false, "{name=\"shop\"} 0\n"), (true, "{name=\"shop\"} 1\n")] {
        metrics.set_leader("shop", leads);
        assert!(metrics.render().ends_with(shown));
    }
    metrics.count_slow_renewal("shop");
    assert!(metrics.render().ends_with("leader_election_slowpath_total{name=\"shop\"} 1\n"));
}
