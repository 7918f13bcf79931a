//! The image of an operator is built from what its project has.

use crate::project::{Project, missing_for_the_image};
use std::{fs, path::Path};

#[test]
fn a_rust_image_is_built_from_sources_without_what_cargo_has_built() {
    let project = Project::new("");
    assert_eq!(missing_for_the_image(&project.root), Vec::<String>::new());
    let dockerfile = project.read("Dockerfile");
    assert!(dockerfile.contains("--locked") && project.root.join("Cargo.lock").is_file());
    assert!(project.read(".dockerignore").lines().any(|line| line == "target"));
    // The framework is a folder that the build gets, too.
    let framework = dockerfile.split("framework=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let ignored = fs::read_to_string(Path::new(framework).join(".dockerignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "target"), "{framework}: {ignored}");
}

#[test]
fn a_go_image_lacks_only_the_checksums_that_the_first_make_writes() {
    let project = Project::new("--lang go");
    assert_eq!(missing_for_the_image(&project.root), ["go.sum"]);
    let makefile = project.read("Makefile");
    for target in ["build", "test", "run", "generate", "manifests", "image"] {
        assert!(makefile.contains(&format!("\n{target}: go.sum\n")), "make {target} needs go.sum first");
    }
}
