//! The samples of the guide's page on the testing API, run with kubectl in the order of the page.

use super::Kubectl;

const PAGE: &str = include_str!("../../../../docs/guide/11-testing-api.md");

/// The code blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_samples_of_the_guide_work_with_kubectl() {
    let kubectl = Kubectl::new(&["--ephemeral", "--testing"]);
    // For the trace.
    kubectl.output_of("create configmap sample");
    let (mut created, mut commands) = (0, 0);
    for (language, text) in blocks(PAGE) {
        if language == "yaml" {
            kubectl.file("sample.yaml", text);
            let said = kubectl.output_of("create -f sample.yaml");
            assert!(said.contains(".testing.setpoint.dev/") && said.ends_with(" created"), "{said}");
            created += 1;
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("$ kubectl ")) {
            // The block above it was created.
            if !line.starts_with("create -f ") {
                assert_ne!(kubectl.output_of(line), "", "{line}");
                commands += 1;
            }
        }
    }
    assert_eq!((created, commands), (7, 6));
    let explained = kubectl.output_of("explain fault.spec.endWatch");
    assert!(explained.contains("testing.setpoint.dev") && explained.contains("how"), "{explained}");
    assert!(kubectl.output_of("get forks").contains("https://127.0.0.1:"));
    assert!(kubectl.output_of("get clock cluster").contains("true"), "it is still frozen");
    assert!(!kubectl.output_of("get customresourcedefinitions").contains("testing.setpoint.dev"));
}
