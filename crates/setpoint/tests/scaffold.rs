//! `setpoint new` and `setpoint create api`: which files they write, what they print, and what they refuse. What becomes of
//! these files is in the modules.

mod generated;
mod go_config;
mod image;
mod run;

use crate::{harness::SETPOINT, project};
use std::{fs, path::Path, process::Command};

fn setpoint(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(SETPOINT);
    command.args(arguments.split(' ')).current_dir(folder);
    command
}

/// What a command prints that succeeds.
fn prints(folder: &Path, arguments: &str) -> String {
    project::prints(&mut setpoint(folder, arguments))
}

/// The error of a command that fails.
fn fails(folder: &Path, arguments: &str) -> String {
    let output = setpoint(folder, arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments} should fail");
    String::from_utf8(output.stderr).unwrap()
}

/// The paths of all files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

const REDIS: &str = "create api --group cache --version v1alpha1 --kind Redis --controller --webhook";
const RUST_FILES: [&str; 12] = [
    ".dockerignore",
    ".github/workflows/test.yml",
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "Dockerfile",
    "README.md",
    "setpoint.yaml",
    "src/lib.rs",
    "src/main.rs",
    "src/settings.rs",
    "tests/operator/main.rs",
];

/// What the first version of a kind prints.
const FIRST_VERSION: &str = "\
wrote     config/samples/cache_v1alpha1_redis.yaml
wrote     src/redis.rs
wrote     src/redis/v1alpha1.rs
wrote     tests/operator/redis.rs
wrote     src/redis/controller.rs
wrote     tests/operator/redis_controller.rs
wrote     src/redis/hooks.rs
wrote     tests/operator/redis_hooks.rs
extended  src/redis.rs
extended  src/lib.rs
extended  tests/operator/main.rs
wrote     setpoint.yaml

next: setpoint test
";
/// What a further version prints.
const SECOND_VERSION: &str = "\
wrote     config/samples/cache_v1_redis.yaml
wrote     src/redis/v1.rs
wrote     src/redis/convert_v1.rs
wrote     tests/operator/redis_v1.rs
wrote     src/redis/conversions.rs
extended  src/redis/conversions.rs
extended  src/redis.rs
unchanged src/lib.rs
extended  tests/operator/main.rs
wrote     setpoint.yaml

next: setpoint test
";
/// The end of `setpoint.yaml` then.
const MARKER: &str = "\
name: shop
domain: acme.io
lang: rust
apis:
- group: cache
  kind: Redis
  plural: redises
  namespaced: true
  controller: true
  webhook: true
  versions: [v1alpha1, v1]
";

#[test]
fn a_rust_project_grows_by_kinds_and_versions() {
    let folder = tempfile::tempdir().unwrap();
    let said = prints(folder.path(), "new shop --domain acme.io");
    assert!(said.ends_with(
        "
next: cd shop
      setpoint create api --group cache --version v1alpha1 --kind Redis --controller
      setpoint test
      setpoint run
"
    ));
    let shop = folder.path().join("shop");
    assert_eq!(files(&shop), RUST_FILES);

    let said = prints(&shop, REDIS);
    assert_eq!(said, FIRST_VERSION);
    let said = prints(&shop, "create api --group cache --version v1 --kind Redis");
    assert_eq!(said, SECOND_VERSION);
    let yaml = fs::read_to_string(shop.join("setpoint.yaml")).unwrap();
    assert!(yaml.ends_with(MARKER), "{yaml}");
    let third = prints(&shop, "create api --group cache --version v2 --kind Redis");
    assert!(third.contains("extended  src/redis.rs\nunchanged src/lib.rs\n"), "{third}");
    let conversions = fs::read_to_string(shop.join("src/redis/conversions.rs")).unwrap();
    for version in ["v1", "v2"] {
        let spoke = format!("conversion.spoke::<super::{version}::Redis>()");
        assert_eq!(conversions.matches(&spoke).count(), 1, "{conversions}");
    }
}

#[test]
fn the_same_command_again_changes_nothing_and_edited_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop");
    prints(folder.path(), "new shop --domain acme.io");
    prints(&shop, REDIS);
    for (at, command) in [(folder.path(), "new shop --domain acme.io"), (shop.as_path(), REDIS)] {
        let again = prints(at, command);
        assert!(
            again.lines().take_while(|line| !line.is_empty()).all(|it| it.starts_with("unchanged ")),
            "{again}"
        );
    }
    let controller = shop.join("src/redis/controller.rs");
    fs::write(&controller, "// mine\n").unwrap();
    let said = prints(&shop, REDIS);
    assert!(said.contains("kept      src/redis/controller.rs: edited (--force overwrites it)\n"), "{said}");
    assert_eq!(fs::read_to_string(&controller).unwrap(), "// mine\n");
    let said = prints(&shop, &format!("{REDIS} --force"));
    assert!(said.contains("wrote     src/redis/controller.rs\n"), "{said}");
}

#[test]
fn a_file_without_its_marker_gets_a_note_what_to_add() {
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop");
    prints(folder.path(), "new shop --domain acme.io");
    fs::write(shop.join("src/lib.rs"), "// mine\n").unwrap();
    let said = prints(&shop, REDIS);
    let note = "kept      src/lib.rs: it has no comment `setpoint:controllers`; add by hand: redis::controller::controller(),";
    assert!(said.contains(note), "{said}");
}

#[test]
fn a_go_project_has_the_layout_of_kubebuilder() {
    let folder = tempfile::tempdir().unwrap();
    prints(folder.path(), "new shop --domain acme.io --lang go");
    let shop = folder.path().join("shop");
    assert!(fails(&shop, "generate").contains("add one with `setpoint create api`"));
    prints(&shop, REDIS);
    assert_eq!(
        files(&shop),
        [
            ".dockerignore",
            ".github/workflows/test.yml",
            ".gitignore",
            "Dockerfile",
            "Makefile",
            "README.md",
            "api/cache/v1alpha1/groupversion_info.go",
            "api/cache/v1alpha1/redis_types.go",
            "api/cache/v1alpha1/zz_generated.redis.deepcopy.go",
            "cmd/main.go",
            "config/certmanager/certificate.yaml",
            "config/certmanager/kustomization.yaml",
            "config/crd/bases/cache.acme.io_redises.yaml",
            "config/crd/kustomization.yaml",
            "config/default/kustomization.yaml",
            "config/default/manager_webhook_patch.yaml",
            "config/manager/kustomization.yaml",
            "config/manager/manager.yaml",
            "config/rbac/kustomization.yaml",
            "config/rbac/leader_election_role.yaml",
            "config/rbac/leader_election_role_binding.yaml",
            "config/rbac/role.yaml",
            "config/rbac/role_binding.yaml",
            "config/rbac/service_account.yaml",
            "config/samples/cache_v1alpha1_redis.yaml",
            "config/samples/kustomization.yaml",
            "config/webhook/kustomization.yaml",
            "config/webhook/manifests.yaml",
            "config/webhook/service.yaml",
            "go.mod",
            "internal/controller/redis_controller.go",
            "internal/controller/redis_controller_test.go",
            "internal/controller/suite_test.go",
            "internal/webhook/redis_webhook.go",
            "internal/webhook/redis_webhook_test.go",
            "setpoint.yaml",
        ]
    );
    let again = prints(&shop, REDIS);
    assert!(
        again.lines().take_while(|line| !line.is_empty()).all(|it| it.starts_with("unchanged ")),
        "{again}"
    );
    let refused = fails(&shop, "create api --group cache --version v1 --kind Redis");
    assert!(refused.contains("further versions of a Go kind"), "{refused}");
}

#[test]
fn errors_say_what_to_do_next() {
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop");
    for command in [REDIS, "generate", "install", "run", "test"] {
        let problem = fails(folder.path(), command);
        assert!(
            problem.contains("Start one with `setpoint new shop --domain acme.io`"),
            "{command}: {problem}"
        );
    }
    prints(folder.path(), "new shop --domain acme.io");
    prints(&shop, REDIS);
    for (arguments, expected) in [
        ("new Shop --domain acme.io", "as `shop`"),
        ("new shop --domain acme", "as `--domain acme.io`"),
        ("new shop --domain acme.io --path shop --framework /nowhere", "the framework is not at /nowhere"),
        ("new other --domain acme.io --path .", "is the project \"shop\""),
        ("new shop --domain acme.io --path . --lang go", "in another language"),
        ("create api --group Cache --version v1 --kind Redis", "as `--group cache`"),
        ("create api --group cache --version one --kind Redis", "write `v1`, `v1beta1` or `v1alpha1`"),
        ("create api --group cache --version v1 --kind redis", "as `--kind RedisCluster`"),
        ("create api --group cache --version v1 --kind Redis --namespaced=false", "Redis is namespaced"),
        (
            "create api --group cache --version v1 --kind Redis --plural redes",
            "is \"redises\" in all its versions",
        ),
        ("create api --group other --version v1 --kind Redis", "as `--kind OtherRedis`"),
        ("install --kubeconfig /nowhere", "cannot use the kubeconfig /nowhere"),
    ] {
        let problem = fails(&shop, arguments);
        assert!(problem.contains(expected), "{arguments}: {problem}");
    }
}
