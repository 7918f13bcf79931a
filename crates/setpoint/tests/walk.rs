//! From nothing to a running operator, in a folder of its own with nothing but cargo; prints how long each step takes. What
//! was generated is applied to a cluster.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod deployed;
mod harness;

use harness::SETPOINT;
use operator::World;
use std::{fs, path::Path, process::Command};

/// A step: what is typed, and a line that it must print.
const STEPS: [(&[&str], &str); 7] = [
    (
        &[
            "create",
            "api",
            "--group",
            "cache",
            "--version",
            "v1alpha1",
            "--kind",
            "Redis",
            "--controller",
            "--webhook",
        ],
        "wrote     src/redis/controller.rs",
    ),
    // A further version, and a kind without namespaces: everything that a project can have.
    (
        &["create", "api", "--group", "cache", "--version", "v1", "--kind", "Redis"],
        "wrote     src/redis/convert_v1.rs",
    ),
    (
        &[
            "create",
            "api",
            "--group",
            "core",
            "--version",
            "v1",
            "--kind",
            "HTTPZone",
            "--namespaced=false",
            "--controller",
        ],
        "wrote     src/http_zone.rs",
    ),
    (&["test"], "test redis_v1::an_object_is_served_in_both_versions ... ok"),
    (&["generate"], "wrote     config/crd/cache.acme.io_redises.yaml"),
    (&["generate"], "unchanged config/crd/cache.acme.io_redises.yaml"),
    (&["run", "--once"], "done: the operator has reconciled all samples"),
];

/// The crates of the framework, which a project optimizes a little, as all its dependencies. Here that would take most of
/// the time.
const FRAMEWORK: [&str; 12] = [
    "api",
    "controllers",
    "expression",
    "kinds",
    "node",
    "operator",
    "schema",
    "server",
    "store",
    "testing",
    "testkit",
    "world",
];

fn unoptimized_framework(folder: &Path) {
    let profile = |name: &&str| format!("[profile.dev.package.{name}]\nopt-level = 0\n");
    fs::create_dir(folder.join(".cargo")).unwrap();
    let profiles: String = FRAMEWORK.iter().map(profile).collect();
    fs::write(folder.join(".cargo/config.toml"), profiles).unwrap();
}

/// The target folder of this workspace.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Runs `setpoint`, and returns what it prints. Its dependencies are those of this workspace: they are compiled once.
fn setpoint(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(SETPOINT);
    command.args(arguments).current_dir(folder).env("CARGO_TARGET_DIR", target());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "setpoint {arguments:?}: {}\n{said}\n{errors}", output.status);
    assert!(!errors.contains("warning:"), "the generated code has warnings:\n{errors}");
    said
}

/// The tests of a project use its dependencies with the same features as its program.
fn nothing_is_left_to_compile(project: &Path) {
    let build =
        Command::new("cargo").arg("build").current_dir(project).env("CARGO_TARGET_DIR", target()).output();
    let said = String::from_utf8(build.unwrap().stderr).unwrap();
    assert!(
        said.contains("Finished") && !said.contains("Compiling"),
        "after the tests, cargo build says\n{said}"
    );
}

#[test]
fn from_nothing_to_a_running_operator() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(async { World::real() });
    let begun = world.now();
    let folder = tempfile::tempdir().unwrap();
    unoptimized_framework(folder.path());
    setpoint(folder.path(), &["new", "walk-shop", "--domain", "acme.io"]);
    let project = folder.path().join("walk-shop");
    for (arguments, expected) in STEPS {
        let step = world.now();
        let said = setpoint(&project, arguments);
        println!("{:>6.1} s  setpoint {}", world.now().since(step).as_secs_f64(), arguments.join(" "));
        assert!(said.lines().any(|line| line.starts_with(expected)), "{expected:?} is not in\n{said}");
        if *arguments == ["test"] {
            nothing_is_left_to_compile(&project);
        }
    }
    deployed::check(&project);
    println!("{:>6.1} s  in all", world.now().since(begun).as_secs_f64());
    let formatted = Command::new("cargo").args(["fmt", "--check"]).current_dir(&project).output().unwrap();
    assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stdout));
}
