//! The files of a Rust project, and those of one kind in it.

use super::{
    files::ProjectFiles,
    names,
    project::{Project, ProjectApi},
    template::Words,
};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/rust/", $path))
    };
}

/// Where the framework's crates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    Folder(PathBuf),
    Git(String),
}

impl Framework {
    /// From the option `--framework`, or the checkout that this program was built from.
    pub(crate) fn choose(given: Option<&str>) -> Result<Framework> {
        if let Some(url) = given.filter(|text| text.contains("://") || text.starts_with("git@")) {
            return Ok(Framework::Git(url.to_owned()));
        }
        let folder = match given {
            Some(path) => PathBuf::from(path),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        };
        match std::fs::canonicalize(&folder) {
            Ok(folder) if folder.join("crates/operator/Cargo.toml").is_file() => {
                Ok(Framework::Folder(folder))
            }
            _ => bail!(
                "the framework is not at {}: give its place with `--framework PATH` (a checkout of Setpoint) or \
                 `--framework URL` (its git repository)",
                folder.display()
            ),
        }
    }

    /// From the Cargo.toml of a project; `None` if the framework is written there in another way.
    fn of_manifest(manifest: &str) -> Option<Framework> {
        let line = manifest.lines().find(|line| line.trim_start().starts_with("operator = {"))?;
        let value = |key: &str| line.split_once(key)?.1.split('"').nth(1);
        let folder = || Path::new(value("path =")?).parent()?.parent().map(Path::to_owned);
        folder().map(Framework::Folder).or_else(|| value("git =").map(|url| Framework::Git(url.to_owned())))
    }

    /// The source of one of its crates, as in Cargo.toml.
    fn dependency(&self, name: &str) -> String {
        match self {
            Framework::Folder(folder) => {
                format!("path = {:?}", folder.join("crates").join(name).display().to_string())
            }
            Framework::Git(url) => format!("git = {url:?}"),
        }
    }
}

/// What makes and tests the image.
const PACKAGING: [(&str, &str); 3] = [
    (".dockerignore", template!("dockerignore.tmpl")),
    ("Dockerfile", template!("Dockerfile.tmpl")),
    (".github/workflows/test.yml", template!("ci.yml.tmpl")),
];

/// The words that all files of a project share.
fn project_words(project: &Project) -> Words {
    Words::default()
        .with("name", &project.name)
        .with("crate", project.name.replace('-', "_"))
        .with("domain", &project.domain)
        .with("namespace", project.namespace())
        .with("image", project.image())
}

fn framework_words(words: Words, framework: &Framework) -> Words {
    let (folder, url) = match framework {
        Framework::Folder(folder) => (folder.display().to_string(), String::new()),
        Framework::Git(url) => (String::new(), url.clone()),
    };
    words
        .with("operator", framework.dependency("operator"))
        .with("testkit", framework.dependency("testkit"))
        .with("framework_path", folder)
        .with("framework_git", url)
}

/// Writes the files of a new project.
pub(crate) fn write_project(project: &Project, framework: &Framework, files: &ProjectFiles) -> Result<()> {
    let words = framework_words(project_words(project), framework);
    for (path, template) in [
        ("Cargo.toml", template!("Cargo.toml.tmpl")),
        (".gitignore", template!("gitignore.tmpl")),
        ("README.md", template!("README.md.tmpl")),
        ("src/main.rs", template!("src/main.rs.tmpl")),
        ("src/settings.rs", template!("src/settings.rs.tmpl")),
    ] {
        files.write(path, &words.fill(template)?)?;
    }
    for (path, template) in PACKAGING {
        files.write(path, &words.fill(template)?)?;
    }
    // `create api` extends these.
    files.write_if_missing("src/lib.rs", &words.fill(template!("src/lib.rs.tmpl"))?)?;
    files.write_if_missing("tests/operator/main.rs", &words.fill(template!("tests/main.rs.tmpl"))?)?;
    // The versions with which the framework is tested.
    if let Framework::Folder(folder) = framework
        && let Ok(lock) = std::fs::read_to_string(folder.join("Cargo.lock"))
    {
        files.write_if_missing("Cargo.lock", &lock)?;
    }
    Ok(())
}

/// Writes what makes and tests the image, where it is missing.
pub(crate) fn write_packaging(project: &Project, files: &ProjectFiles) -> Result<()> {
    let manifest = files.read("Cargo.toml")?.context("Cargo.toml is not there: restore it")?;
    let Some(framework) = Framework::of_manifest(&manifest) else { return Ok(()) };
    let words = framework_words(project_words(project), &framework);
    for (path, template) in PACKAGING {
        if !files.exists(path) {
            files.write(path, &words.fill(template)?)?;
        }
    }
    Ok(())
}

/// A version of a kind that is being added.
#[derive(Debug)]
pub(crate) struct Addition<'a> {
    pub(crate) project: &'a Project,
    pub(crate) api: &'a ProjectApi,
    pub(crate) version: &'a str,
    /// Also writes a controller.
    pub(crate) controller: bool,
    /// Also writes webhooks.
    pub(crate) webhook: bool,
}

impl Addition<'_> {
    /// The version that is stored.
    fn stored(&self) -> &str {
        self.api.versions.first().map_or(self.version, String::as_str)
    }

    fn module(&self) -> String {
        names::module(&self.api.kind)
    }

    fn words(&self) -> Words {
        let (api, module) = (self.api, self.module());
        let variable = if module == names::snake(&api.kind) { module.clone() } else { "object".to_owned() };
        project_words(self.project)
            .with("group", self.project.full_group(&api.group))
            .with("version", self.version)
            .with("hub", self.stored())
            .with("kind", &api.kind)
            .with("plural", &api.plural)
            .with("lower", api.kind.to_ascii_lowercase())
            .with("module", module)
            .with("var", variable)
            .with("scope", if api.namespaced { "\"default\"" } else { "None" })
            .with("sample", self.sample())
            .with("sample_name", self.sample_name())
            .with_flag("namespaced", api.namespaced)
    }

    /// Samples of all versions can be in a cluster at once.
    fn sample_name(&self) -> String {
        let lower = self.api.kind.to_ascii_lowercase();
        let is_stored = self.version == self.stored();
        if is_stored { format!("{lower}-sample") } else { format!("{lower}-{}-sample", self.version) }
    }

    fn sample(&self) -> String {
        let ProjectApi { group, kind, .. } = self.api;
        format!("{group}_{}_{}.yaml", self.version, names::snake(kind))
    }

    /// Writes the files of the version, and of the controller and the webhooks that are added with it.
    pub(crate) fn write(&self, files: &ProjectFiles) -> Result<()> {
        let (module, words) = (self.module(), self.words());
        let sample = format!("config/samples/{}", self.sample());
        files.write(&sample, &words.fill(template!("api/sample.yaml.tmpl"))?)?;
        if self.version == self.stored() { self.write_kind(files) } else { self.write_version(files) }?;
        let mut own = Vec::new();
        let mut lib = vec![
            ("modules", vec![format!("pub mod {module};")]),
            ("definitions", vec![format!("{module}::definition(),")]),
        ];
        let mut tests = vec![format!("mod {module};")];
        if self.controller {
            files.write(
                &format!("src/{module}/controller.rs"),
                &words.fill(template!("api/controller.rs.tmpl"))?,
            )?;
            let test = words.clone().with("sample", self.stored_sample());
            let test = test.fill(template!("api/controller_test.rs.tmpl"))?;
            files.write(&format!("tests/operator/{module}_controller.rs"), &test)?;
            own.push(("modules", vec!["pub mod controller;".to_owned()]));
            lib.push(("controllers", vec![format!("{module}::controller::controller(),")]));
            tests.push(format!("mod {module}_controller;"));
        }
        if self.webhook {
            files.write(&format!("src/{module}/hooks.rs"), &words.fill(template!("api/hooks.rs.tmpl"))?)?;
            let test =
                words.clone().with("version", self.stored()).fill(template!("api/hooks_test.rs.tmpl"))?;
            files.write(&format!("tests/operator/{module}_hooks.rs"), &test)?;
            own.push(("modules", vec!["mod hooks;".to_owned()]));
            own.push(("webhooks", vec!["hooks::add,".to_owned()]));
            tests.push(format!("mod {module}_hooks;"));
        }
        if self.version != self.stored() {
            own.extend(self.write_conversion(files)?);
            tests.push(format!("mod {module}_{};", self.version));
        }
        if self.api.webhook || self.api.versions.len() > 1 {
            lib.push(("webhooks", vec![format!("{module}::webhooks,")]));
        }
        if !own.is_empty() {
            files.insert(&format!("src/{module}.rs"), &own)?;
        }
        files.insert("src/lib.rs", &lib)?;
        files.insert("tests/operator/main.rs", &[("tests", tests)])
    }

    fn stored_sample(&self) -> String {
        Addition { version: self.stored(), ..*self }.sample()
    }

    /// The first version, and what is there once for a kind.
    fn write_kind(&self, files: &ProjectFiles) -> Result<()> {
        let (module, words) = (self.module(), self.words());
        files.write_if_missing(&format!("src/{module}.rs"), &words.fill(template!("api/kind.rs.tmpl"))?)?;
        files.write(
            &format!("src/{module}/{}.rs", self.version),
            &words.fill(template!("api/version.rs.tmpl"))?,
        )?;
        files
            .write(&format!("tests/operator/{module}.rs"), &words.fill(template!("api/sample_test.rs.tmpl"))?)
    }

    /// A further version begins as a copy of the stored one.
    fn write_version(&self, files: &ProjectFiles) -> Result<()> {
        let (module, version, stored) = (self.module(), self.version, self.stored());
        let path = format!("src/{module}/{version}.rs");
        if files.exists(&path) {
            // It was written by this command before, and differs from the stored version by now.
            return Ok(());
        }
        let stored_path = format!("src/{module}/{stored}.rs");
        let text =
            files.read(&stored_path)?.with_context(|| format!("{stored_path} is not there: restore it"))?;
        let (old, new) = (format!("version = \"{stored}\""), format!("version = \"{version}\""));
        if !text.contains(&old) {
            bail!("{stored_path} has no line `{old}`, so it cannot be copied: write {path} by hand");
        }
        let copy = text
            .replace(&old, &new)
            .replace(&format!("in version {stored}."), &format!("in version {version}."));
        files.write(&path, &copy)
    }

    /// Converts a further version to the stored one and back; returns the lines for the file of the kind.
    fn write_conversion(&self, files: &ProjectFiles) -> Result<Vec<(&'static str, Vec<String>)>> {
        let (module, version, kind) = (self.module(), self.version, &self.api.kind);
        let words = self.words();
        let conversion = words.fill(template!("api/conversion.rs.tmpl"))?;
        files.write(&format!("src/{module}/convert_{version}.rs"), &conversion)?;
        let test = words.fill(template!("api/conversion_test.rs.tmpl"))?;
        files.write(&format!("tests/operator/{module}_{version}.rs"), &test)?;
        let all = format!("src/{module}/conversions.rs");
        files.write_if_missing(&all, &words.fill(template!("api/conversions.rs.tmpl"))?)?;
        let spoke = format!("let conversion = conversion.spoke::<super::{version}::{kind}>();");
        files.insert(&all, &[("spokes", vec![spoke])])?;
        let modules =
            ["mod conversions;".to_owned(), format!("mod convert_{version};"), format!("pub mod {version};")];
        let definitions = vec![format!("definition::of::<{version}::{kind}>(),")];
        let webhooks = vec!["conversions::add,".to_owned()];
        Ok(vec![("modules", modules.to_vec()), ("definitions", definitions), ("webhooks", webhooks)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_framework_is_read_as_it_was_written() {
        for framework in [
            Framework::Folder("/a b/setpoint".into()),
            Framework::Git("https://example.com/setpoint".to_owned()),
        ] {
            let line = format!("[dependencies]\noperator = {{ {} }}\n", framework.dependency("operator"));
            assert_eq!(Framework::of_manifest(&line), Some(framework));
        }
        assert_eq!(Framework::of_manifest("operator = \"1\"\n"), None);
    }
}
