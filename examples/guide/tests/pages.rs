//! Pages that show code of the examples show it as it is; every other page with Rust is compiled and run; and the list of
//! an operator's metrics is complete.

use k8s_openapi::api::core::v1::ConfigMap;
use operator::{Context, Controller, Failure, Key, Manager, Next, all};
use std::{collections::BTreeSet, time::Duration};

#[test]
fn the_first_page_shows_the_files_of_the_example() {
    let page = include_str!("../../../docs/guide/first-operator.md");
    for (name, file) in [
        ("src/lib.rs", include_str!("../../greeting/src/lib.rs")),
        ("src/main.rs", include_str!("../../greeting/src/main.rs")),
        ("tests/story.rs", include_str!("../../greeting/tests/story.rs")),
    ] {
        let shown = format!("`{name}`:\n\n```rust\n{file}```\n");
        assert!(page.contains(&shown), "examples/greeting/{name} is not on the page as it is");
    }
}

/// The code blocks in Rust of a page.
fn rust(page: &str) -> impl Iterator<Item = &str> {
    page.split("```rust")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n")?.1.split_once("```").map(|(code, _)| code))
}

#[test]
fn readme_shows_functions_of_the_digest_example() {
    let example =
        concat!(include_str!("../../digest/src/lib.rs"), include_str!("../../digest/tests/story.rs"));
    let functions: Vec<_> =
        rust(include_str!("../../../README.md")).flat_map(|code| code.trim().split("\n\n")).collect();
    assert_eq!(functions.len(), 2);
    for function in functions {
        assert!(example.contains(function), "not in examples/digest as it is:\n{function}");
    }
}

#[test]
fn every_page_with_rust_is_compiled_or_compared() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
    let compiled = include_str!("../src/lib.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
        let is_checked = name == "first-operator.md" || compiled.contains(&format!("docs/guide/{name}\""));
        assert!(
            is_checked || rust(&page).next().is_none(),
            "add docs/guide/{name} to examples/guide/src/lib.rs"
        );
    }
}

/// It appears with the first renewal of a lease that another process has written.
const RARE: &str = "leader_election_slowpath_total";

async fn look_again(context: Context<()>, key: Key) -> Result<Next, Failure> {
    context.get::<ConfigMap>(&key)?;
    Ok(Next::CheckAfter(Duration::from_secs(60)))
}

#[test]
fn the_page_of_metrics_lists_those_of_an_operator() {
    testkit::run(|cluster| async move {
        let client = cluster.client_as("shop", &["system:masters"]);
        let controller = Controller::new("shop", all::<ConfigMap>()).reconcile((), look_again);
        let manager =
            Manager::new("shop", cluster.world(), client).elect_in("default").controller(controller);
        let running = cluster.run(manager);
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await;
        cluster.advance(Duration::from_secs(120)).await;
        let page = running.metrics().render();
        let names: BTreeSet<_> =
            page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let (_, list) =
            include_str!("../../../docs/guide/metrics.md").split_once("## Of an operator").unwrap();
        let listed: BTreeSet<_> =
            list.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        let differences: Vec<_> = names.symmetric_difference(&listed).filter(|name| **name != RARE).collect();
        assert!(differences.is_empty(), "{differences:?}");
    });
}
