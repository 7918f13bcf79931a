//! The files of a Go project in the layout of kubebuilder, and those of one kind in it.

mod config;

pub(crate) use config::set_image;

use super::{
    files::ProjectFiles,
    names,
    project::{Project, ProjectApi},
    template::Words,
};
use anyhow::{Result, bail};

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/go/", $path))
    };
}

/// The path of the module of a project.
pub(crate) fn module_path(given: Option<&str>, domain: &str, name: &str) -> Result<String> {
    let path = given.map_or_else(|| format!("{domain}/{name}"), str::to_owned);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-._~/".contains(letter);
    if !path.chars().all(is_letter) || path.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        bail!("{path:?} cannot be the path of a Go module: write one as `--module github.com/acme/shop`");
    }
    Ok(path)
}

fn project_words(project: &Project) -> Words {
    Words::default()
        .with("name", &project.name)
        .with("domain", &project.domain)
        .with("module", &project.module)
        .with("namespace", project.namespace())
        .with("image", project.image())
}

/// Writes the files of a new project.
pub(crate) fn write_project(project: &Project, files: &ProjectFiles) -> Result<()> {
    let words = project_words(project);
    for (path, template) in [
        (".gitignore", template!("gitignore.tmpl")),
        (".dockerignore", template!("dockerignore.tmpl")),
        ("Makefile", template!("Makefile.tmpl")),
        ("Dockerfile", template!("Dockerfile.tmpl")),
        (".github/workflows/test.yml", template!("ci.yml.tmpl")),
        ("README.md", template!("README.md.tmpl")),
    ] {
        files.write(path, &words.fill(template)?)?;
    }
    // `create api` and `go mod tidy` extend these.
    for (path, template) in [("go.mod", template!("go.mod.tmpl")), ("cmd/main.go", template!("main.go.tmpl"))]
    {
        files.write_if_missing(path, &words.fill(template)?)?;
    }
    config::write_project(&words, files)
}

/// Writes the files of a kind, and adds it to `cmd/main.go` and to what kustomize builds.
pub(crate) fn write_api(
    project: &Project,
    api: &ProjectApi,
    version: &str,
    (controller, webhook): (bool, bool),
    files: &ProjectFiles,
) -> Result<()> {
    if api.versions.len() > 1 {
        bail!(
            "{} has the version {} already: further versions of a Go kind need conversion functions, which this command \
             does not write; add the package by hand (https://book.kubebuilder.io/multiversion-tutorial/tutorial)",
            api.kind,
            api.versions[0]
        );
    }
    let words = api_words(project, api, version);
    let snake = names::snake(&api.kind);
    write_types(project, api, version, files)?;
    if controller {
        write_controller(&words, &snake, files)?;
        config::add_rules(&words, api.namespaced, files)?;
    }
    if webhook {
        for (path, template) in [
            (format!("internal/webhook/{snake}_webhook.go"), template!("webhook.go.tmpl")),
            (format!("internal/webhook/{snake}_webhook_test.go"), template!("webhook_test.go.tmpl")),
        ] {
            files.write(&path, &words.fill(template)?)?;
        }
        config::add_webhooks(&words, files)?;
    }
    extend_main(&words, (controller, webhook), files)
}

/// Writes the type, its definition and its sample.
fn write_types(project: &Project, api: &ProjectApi, version: &str, files: &ProjectFiles) -> Result<()> {
    let words = api_words(project, api, version);
    let (group, snake) = (&api.group, names::snake(&api.kind));
    let folder = format!("api/{group}/{version}");
    let definition = format!("{}_{}.yaml", project.full_group(group), api.plural);
    let sample = format!("{group}_{version}_{snake}.yaml");
    for (path, template) in [
        (format!("{folder}/groupversion_info.go"), template!("groupversion_info.go.tmpl")),
        (format!("{folder}/{snake}_types.go"), template!("types.go.tmpl")),
        (format!("config/crd/bases/{definition}"), template!("crd.yaml.tmpl")),
        (format!("config/samples/{sample}"), template!("sample.yaml.tmpl")),
    ] {
        files.write(&path, &words.fill(template)?)?;
    }
    // `make generate` replaces this file by one for all kinds of the package.
    let copies = files.read(&format!("{folder}/zz_generated.deepcopy.go"))?.unwrap_or_default();
    if !copies.contains(&words.fill_text("func (in *«kind») DeepCopyInto(")?) {
        let copies = words.fill(template!("deepcopy.go.tmpl"))?;
        files.write(&format!("{folder}/zz_generated.{snake}.deepcopy.go"), &copies)?;
    }
    config::add_kind(&words, &definition, &sample, files)
}

/// Adds the kind to `cmd/main.go`.
fn extend_main(words: &Words, (controller, webhook): (bool, bool), files: &ProjectFiles) -> Result<()> {
    let mut main = vec![
        ("imports", vec![words.fill_text("«package» \"«module»/api/«short_group»/«version»\"")?]),
        ("scheme", vec![words.fill_text("utilruntime.Must(«package».AddToScheme(scheme))")?]),
    ];
    if controller {
        main.push(("imports", vec![words.fill_text("\"«module»/internal/controller\"")?]));
        let call = "check((&controller.«kind»Reconciler{Client: manager.GetClient()}).SetupWithManager(manager), \"«lower»\")";
        main.push(("controllers", vec![words.fill_text(call)?]));
    }
    if webhook {
        main.push(("imports", vec![words.fill_text("\"«module»/internal/webhook\"")?]));
        main.push((
            "webhooks",
            vec![words.fill_text("check(webhook.Setup«kind»(manager), \"webhooks of «lower»\")")?],
        ));
    }
    files.insert("cmd/main.go", &main)
}

fn api_words(project: &Project, api: &ProjectApi, version: &str) -> Words {
    let group = project.full_group(&api.group);
    let package: String = api.group.chars().filter(char::is_ascii_alphanumeric).collect();
    project_words(project)
        .with("group_dashes", group.replace('.', "-"))
        .with("group", group)
        .with("short_group", &api.group)
        .with("package", format!("{package}{version}"))
        .with("version", version)
        .with("kind", &api.kind)
        .with("plural", &api.plural)
        .with("lower", api.kind.to_ascii_lowercase())
        .with_flag("namespaced", api.namespaced)
}

fn write_controller(words: &Words, snake: &str, files: &ProjectFiles) -> Result<()> {
    for (path, template) in [
        (format!("internal/controller/{snake}_controller.go"), template!("controller.go.tmpl")),
        (format!("internal/controller/{snake}_controller_test.go"), template!("controller_test.go.tmpl")),
    ] {
        files.write(&path, &words.fill(template)?)?;
    }
    let suite = "internal/controller/suite_test.go";
    files.write_if_missing(suite, &words.fill(template!("suite_test.go.tmpl"))?)?;
    // The reconciler gets the client of the manager, which exists when this list is made.
    let reconciler = words.fill_text("&«kind»Reconciler{Client: manager.GetClient()},")?;
    files.insert(
        suite,
        &[
            ("imports", vec![words.fill_text("«package» \"«module»/api/«short_group»/«version»\"")?]),
            ("scheme", vec![words.fill_text("«package».AddToScheme,")?]),
            ("controllers", vec![reconciler]),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_module_is_checked() {
        assert_eq!(module_path(None, "acme.io", "shop").unwrap(), "acme.io/shop");
        assert_eq!(module_path(Some("github.com/acme/shop"), "", "").unwrap(), "github.com/acme/shop");
        for bad in ["", "a b", "/a", "a//b", "../a"] {
            assert!(module_path(Some(bad), "", "").unwrap_err().to_string().contains("--module"), "{bad}");
        }
    }
}
