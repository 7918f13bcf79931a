//! The samples of the guide's page on the testing API, run with kubectl in the order of the page.

use super::Kubectl;

const PAGE: &str = include_str!("../../../../docs/guide/testing-api.md");

/// The code blocks of a page: the line before, language and text.
fn blocks(page: &str) -> Vec<(&str, &str, &str)> {
    let parts: Vec<&str> = page.split("```").collect();
    let blocks = parts.chunks_exact(2).filter_map(|pair| {
        let (language, text) = pair[1].split_once('\n')?;
        Some((pair[0].trim_end().lines().last().unwrap_or_default(), language, text))
    });
    blocks.collect()
}

/// The output of a command of kubectl that succeeds.
fn said_in_a_shell(kubectl: &Kubectl, line: &str) -> String {
    let mut shell = kubectl.program("sh".as_ref());
    let output = shell.args(["-c", &format!("\"$SETPOINT_KUBECTL\" {line}")]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {line}: {complaint}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn the_samples_of_the_guide_work_with_kubectl() {
    let kubectl = Kubectl::new(&["--ephemeral", "--testing"]);
    // For the trace.
    kubectl.output_of("create configmap sample");
    let (mut created, mut commands) = (0, 0);
    for (before, language, text) in blocks(PAGE) {
        if language == "yaml" {
            let name = before.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
            kubectl.file(name.expect("a line with the name of the file"), text);
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("$ kubectl ")) {
            let said = said_in_a_shell(&kubectl, line);
            if line.starts_with("create -f ") {
                assert!(said.contains(".testing.setpoint.dev/") && said.ends_with(" created"), "{said}");
                created += 1;
            } else {
                assert_ne!(said, "", "{line}");
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
