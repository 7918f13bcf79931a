//! What the first page of the guide shows is an example that compiles and whose test passes.

#[test]
fn the_first_page_shows_the_files_of_the_example() {
    let page = include_str!("../../../docs/guide/1-first-operator.md");
    for (name, file) in [
        ("src/lib.rs", include_str!("../../greeting/src/lib.rs")),
        ("src/main.rs", include_str!("../../greeting/src/main.rs")),
        ("tests/story.rs", include_str!("../../greeting/tests/story.rs")),
    ] {
        let shown = format!("`{name}`:\n\n```rust\n{file}```\n");
        assert!(page.contains(&shown), "examples/greeting/{name} is not on the page as it is");
    }
}
