//! `config/` of a Go project in the layout of kubebuilder, which kustomize builds from its first command on.
//!
//! controller-gen writes `config/crd/bases`, `config/rbac/role.yaml` and `config/webhook/manifests.yaml` from comments in
//! the code. Until it does so for the first time, they have what it would write for the code of the templates.

use crate::scaffold::{files::ProjectFiles, template::Words};
use anyhow::{Result, bail};

/// Each path below `config/`, with its template.
macro_rules! templates {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../templates/go/config/", $path, ".tmpl")))),*]
    };
}

const MANAGER: &str = "config/manager/kustomization.yaml";
/// The image that this name stands for is in [`MANAGER`].
const IMAGE_NAME: &str = "- name: controller\n";

/// Writes what a project has before its first kind.
pub(super) fn write_project(words: &Words, files: &ProjectFiles) -> Result<()> {
    write(
        words,
        files,
        &templates![
            "manager/manager.yaml",
            "rbac/kustomization.yaml",
            "rbac/service_account.yaml",
            "rbac/role_binding.yaml",
            "rbac/leader_election_role.yaml",
            "rbac/leader_election_role_binding.yaml",
        ],
    )?;
    // Other commands extend these.
    write_if_missing(
        words,
        files,
        &templates!["default/kustomization.yaml", "manager/kustomization.yaml", "rbac/role.yaml"],
    )
}

/// Adds a definition and a sample to what kustomize builds.
pub(super) fn add_kind(words: &Words, definition: &str, sample: &str, files: &ProjectFiles) -> Result<()> {
    write_if_missing(words, files, &templates!["crd/kustomization.yaml", "samples/kustomization.yaml"])?;
    let resource = |path: String| [("resources", vec![format!("- {path}")])];
    files.insert("config/crd/kustomization.yaml", &resource(format!("bases/{definition}")))?;
    files.insert("config/samples/kustomization.yaml", &resource(sample.to_owned()))?;
    files.insert("config/default/kustomization.yaml", &resource("../crd".to_owned()))
}

/// Adds the rules of the template's controller.
pub(super) fn add_rules(words: &Words, has_child: bool, files: &ProjectFiles) -> Result<()> {
    let mut rules = vec![
        "- {apiGroups: [«group»], resources: [«plural»], verbs: [get, list, watch]}",
        "- {apiGroups: [«group»], resources: [«plural»/status], verbs: [get, patch, update]}",
        "- {apiGroups: [«group»], resources: [«plural»/finalizers], verbs: [update]}",
    ];
    if has_child {
        rules.push(
            "- {apiGroups: [\"\"], resources: [configmaps], verbs: [create, get, list, update, watch]}",
        );
    }
    let rules: Result<_> = rules.into_iter().map(|rule| words.fill_text(rule)).collect();
    extend_until_generated("config/rbac/role.yaml", &[("rules", rules?)], files)
}

/// Adds the configurations of the template's webhooks, their Service and their certificate.
pub(super) fn add_webhooks(words: &Words, files: &ProjectFiles) -> Result<()> {
    write(
        words,
        files,
        &templates![
            "webhook/kustomization.yaml",
            "webhook/service.yaml",
            "certmanager/kustomization.yaml",
            "certmanager/certificate.yaml",
            "default/manager_webhook_patch.yaml",
        ],
    )?;
    write_if_missing(words, files, &templates!["webhook/manifests.yaml"])?;
    let webhook = |prefix: &str, path: &str| {
        words.fill_text(&format!(
            "- {{name: {prefix}.«plural».«group», admissionReviewVersions: [v1], failurePolicy: Fail, sideEffects: None, \
             clientConfig: {{service: {{name: webhook-service, namespace: system, path: \
             /{path}-«group_dashes»-«version»-«lower»}}}}, rules: [{{apiGroups: [«group»], apiVersions: [«version»], \
             operations: [CREATE, UPDATE], resources: [«plural»]}}]}}"
        ))
    };
    extend_until_generated(
        "config/webhook/manifests.yaml",
        &[
            ("mutating", vec![webhook("default", "mutate")?]),
            ("validating", vec![webhook("validate", "validate")?]),
        ],
        files,
    )?;
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    files.insert(
        "config/default/kustomization.yaml",
        &[
            ("resources", lines(&["- ../webhook", "- ../certmanager"])),
            ("patches", lines(&["patches:", "- path: manager_webhook_patch.yaml"])),
        ],
    )
}

/// Puts an image into the Deployment.
pub(crate) fn set_image(image: &str, files: &ProjectFiles) -> Result<()> {
    let old = files.read(MANAGER)?.unwrap_or_default();
    let Some(new) = with_image(&old, image) else {
        bail!("{MANAGER} names no image `controller`: add it to `images` there, or restore the file");
    };
    if new == old { Ok(()) } else { files.overwrite(MANAGER, &new) }
}

/// A kustomization with another image for the name `controller`; `None` if it has none.
fn with_image(text: &str, image: &str) -> Option<String> {
    let (before, rest) = text.split_once(IMAGE_NAME)?;
    let others = rest.lines().skip_while(|line| line.starts_with("  "));
    let others: String = others.map(|line| format!("{line}\n")).collect();
    let (name, version) = match (image.split_once('@'), image.rsplit_once(':')) {
        (Some((name, digest)), _) => (name, format!("digest: \"{digest}\"")),
        // Before the last slash, a colon precedes a port.
        (None, Some((name, tag))) if !tag.contains('/') => (name, format!("newTag: \"{tag}\"")),
        _ => (image, "newTag: \"latest\"".to_owned()),
    };
    Some(format!("{before}{IMAGE_NAME}  newName: {name}\n  {version}\n{others}"))
}

fn write(words: &Words, files: &ProjectFiles, templates: &[(&str, &str)]) -> Result<()> {
    templates.iter().try_for_each(|(path, text)| files.write(&format!("config/{path}"), &words.fill(text)?))
}

fn write_if_missing(words: &Words, files: &ProjectFiles, templates: &[(&str, &str)]) -> Result<()> {
    templates
        .iter()
        .try_for_each(|(path, text)| files.write_if_missing(&format!("config/{path}"), &words.fill(text)?))
}

/// Adds lines to a file, unless controller-gen has written it: then it will add them.
fn extend_until_generated(
    path: &str,
    insertions: &[(&str, Vec<String>)],
    files: &ProjectFiles,
) -> Result<()> {
    match files.read(path)? {
        Some(text) if !text.contains("# setpoint:") => Ok(()),
        _ => files.insert(path, insertions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_split_into_its_name_and_its_tag_or_digest() {
        let before = "images:\n- name: controller\n  newName: a\n  newTag: \"latest\"\nlabels: []\n";
        for (image, expected) in [
            ("shop", "newName: shop\n  newTag: \"latest\""),
            ("shop:1.0", "newName: shop\n  newTag: \"1.0\""),
            ("host:5000/shop", "newName: host:5000/shop\n  newTag: \"latest\""),
            ("host:5000/shop:2", "newName: host:5000/shop\n  newTag: \"2\""),
            ("shop@sha256:0a", "newName: shop\n  digest: \"sha256:0a\""),
        ] {
            let expected = format!("images:\n- name: controller\n  {expected}\nlabels: []\n");
            assert_eq!(with_image(before, image), Some(expected));
        }
        assert_eq!(with_image("images: []\n", "shop"), None);
    }
}
