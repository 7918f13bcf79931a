//! YAML whose aliases expand: rejected before it takes up memory.

use super::*;

#[test]
fn aliases_that_would_fill_memory_are_refused() {
    let large = "x".repeat(1 << 20);
    let doubling = |levels: usize| {
        let lines = (1..levels).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1));
        format!("a0: &a0 [x, x]\n{}", lines.collect::<String>())
    };
    let nested_anchors: String = (0..110).map(|at| format!("&a{at} [")).collect();
    let merges: String = (0..900).map(|at| format!("- {{<<: *m, k{at}: 1}}\n")).collect();
    for (what, text) in [
        ("a megabyte aliased 900 times", format!("a: &a {large}\nb: [{}]\n", vec!["*a"; 900].join(","))),
        ("a megabyte below 110 anchors", format!("{nested_anchors}{large}{}", "]".repeat(110))),
        ("a megabyte merged 900 times", format!("m: &m {{a: {large}}}\nl:\n{merges}")),
        ("a megabyte as a key, 900 times", format!("m: &m {{? {large} : 1}}\nl:\n{merges}")),
        ("lists that double", doubling(60)),
        (
            "small maps, many times",
            format!("a: &a [{}]\nb: [{}]\n", "{a: 1},".repeat(1000), "*a,".repeat(1000)),
        ),
    ] {
        let refused = to_json(text.as_bytes()).expect_err(what).to_string();
        assert_eq!(refused, "yaml: document contains excessive aliasing", "{what}");
    }
}

#[test]
fn aliases_of_ordinary_manifests_are_copied() {
    let labels = "labels: &labels {app: web, tier: front}\n";
    let uses: String = (0..200).map(|_| "- {<<: *labels, x: &x v, z: *x}\n").collect();
    let read = to_json(format!("{labels}items:\n{uses}").as_bytes()).unwrap();
    let value: Value = serde_json::from_slice(&read.json).unwrap();
    assert_eq!(value["items"][199], serde_json::json!({"app": "web", "tier": "front", "x": "v", "z": "v"}));
    let certificate = "x".repeat(100_000);
    let text = format!("a: &a {certificate}\nb: [{}]\n", vec!["*a"; 20].join(","));
    assert_eq!(to_json(text.as_bytes()).map(|read| read.json.len() > 2_000_000), Ok(true));
}

#[test]
fn at_most_a_thousand_duplicate_keys_are_reported() {
    let read = to_json("a: 1\n".repeat(200_000).as_bytes()).unwrap();
    assert_eq!(lines(&read.duplicates.unwrap()).len(), MAX_DUPLICATES);
}
