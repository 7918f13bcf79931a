//! What a failing test leaves behind.

use k8s_openapi::api::core::v1::ConfigMap;
use std::process::Command;

/// Set in the process whose test fails on purpose.
const FAILS: &str = "TESTKIT_FAILS";

#[test]
fn a_failing_test_prints_its_last_requests_its_seed_and_the_file_with_its_trace() {
    if let Some(how) = std::env::var_os(FAILS) {
        testkit::simulate(3, |cluster| async move {
            for _ in 0..60 {
                cluster.find::<ConfigMap>("default", "missing").await;
            }
            match how.to_str() {
                Some("panic") => panic!("on purpose"),
                _ => futures::future::pending::<()>().await,
            }
        });
    }
    for (how, message) in [("panic", "on purpose"), ("wait", "nothing can happen any more")] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "--nocapture"])
            .env(FAILS, how)
            .arg("failures::a_failing_test_prints_its_last_requests_its_seed_and_the_file_with_its_trace");
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(message), "{text}");
        assert_eq!(text.matches("configmaps/missing").count(), 50, "{text}");
        assert!(text.contains("SETPOINT_SEED=3"), "{text}");
        let file = text.lines().find_map(|line| line.strip_prefix("the whole trace: ")).unwrap();
        let trace = std::fs::read_to_string(file).unwrap();
        assert_eq!(trace.lines().count(), 60, "{trace}");
    }
}
