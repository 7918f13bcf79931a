//! The YAML documents of an operator, and the files that they belong into: for kustomize, and as a Helm chart.

use super::{names, project::Project};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Stands for the namespace in the manifests that become a chart.
pub(crate) const CHART_NAMESPACE: &str = "namespace-of-the-release";
/// Stands for the image in the manifests that become a chart.
pub(crate) const CHART_IMAGE: &str = "image-of-the-release";
/// More documents than an operator has: a limit for files that are none of ours.
const MAX_DOCUMENTS: usize = 10_000;

/// A YAML document that is an object of Kubernetes.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) object: Value,
}

impl Document {
    pub(crate) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The folder of `config/` and the name of the file.
    fn place(&self) -> (&'static str, String) {
        let snake = names::snake(self.kind());
        match self.kind() {
            "CustomResourceDefinition" => {
                let spec = &self.object["spec"];
                let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                ("crd", format!("{}_{}", part(&spec["group"]), part(&spec["names"]["plural"])))
            }
            "ServiceAccount" | "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => {
                ("rbac", snake)
            }
            "Service" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                ("webhook", snake)
            }
            _ => ("manager", snake),
        }
    }
}

/// The documents of a stream, between lines of three dashes.
pub(crate) fn documents(yaml: &str) -> Result<Vec<Document>> {
    let mut texts = vec![String::new()];
    for line in yaml.lines() {
        if line == "---" || line.starts_with("--- ") {
            texts.push(String::new());
        } else if let Some(text) = texts.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    if texts.len() > MAX_DOCUMENTS {
        bail!(
            "more than {MAX_DOCUMENTS} documents are no manifests of an operator: take other files out of config/"
        );
    }
    let mut documents = Vec::new();
    for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
        let json = schema::yaml::to_json(text.as_bytes())
            .with_context(|| format!("correct this document, which is no YAML:\n{text}"))?
            .json;
        let object: Value = serde_json::from_slice(&json)?;
        if !object.is_null() {
            documents.push(Document { text, object });
        }
    }
    Ok(documents)
}

/// The documents of all YAML files of a folder, by their names; none without the folder.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<Document>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        found.extend(documents(&text).with_context(|| format!("in {}", path.display()))?);
    }
    Ok(found)
}

/// The texts of files, by their paths.
pub(crate) type FileTexts = BTreeMap<String, String>;

/// The files of `config/`: one for each document, and a kustomization for each folder.
pub(crate) fn kustomize_files(project: &Project, documents: &[Document]) -> FileTexts {
    let mut files = FileTexts::new();
    let mut folders: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for document in documents {
        let (folder, stem) = document.place();
        let names = folders.entry(folder).or_default();
        let name = unused(&stem, |name| names.contains(name));
        files.insert(format!("config/{folder}/{name}"), document.text.clone());
        names.insert(name);
    }
    for (folder, names) in &folders {
        files.insert(format!("config/{folder}/kustomization.yaml"), kustomization(names));
    }
    let namespace = project.namespace();
    files.insert(
        "config/default/namespace.yaml".to_owned(),
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}\n  labels:\n    \
             pod-security.kubernetes.io/enforce: restricted\n"
        ),
    );
    let all = folders.keys().map(|folder| format!("../{folder}"));
    let all: Vec<String> = ["namespace.yaml".to_owned()].into_iter().chain(all).collect();
    files.insert("config/default/kustomization.yaml".to_owned(), kustomization(&all));
    files
}

fn kustomization<'a>(resources: impl IntoIterator<Item = &'a String>) -> String {
    let lines: String = resources.into_iter().map(|name| format!("- {name}\n")).collect();
    format!("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{lines}")
}

/// `stem.yaml`, or `stem_2.yaml` and so on if there is one already.
fn unused(stem: &str, is_used: impl Fn(&str) -> bool) -> String {
    let first = format!("{stem}.yaml");
    if !is_used(&first) {
        return first;
    }
    let mut names = (2..).map(|number| format!("{stem}_{number}.yaml"));
    names.find(|name| !is_used(name)).unwrap_or(first)
}

/// The files of a Helm chart, from manifests with [`CHART_NAMESPACE`] and [`CHART_IMAGE`].
pub(crate) fn chart_files(project: &Project, image: &str, documents: &[Document]) -> FileTexts {
    let root = format!("charts/{}", project.name);
    let mut files = FileTexts::new();
    for document in documents {
        let (folder, stem) = document.place();
        let folder = if folder == "crd" { "crds" } else { "templates" };
        let name = unused(&stem, |name| files.contains_key(&format!("{root}/{folder}/{name}")));
        let text = if folder == "crds" { document.text.clone() } else { templated(document) };
        files.insert(format!("{root}/{folder}/{name}"), text);
    }
    let name = &project.name;
    files.insert(
        format!("{root}/Chart.yaml"),
        format!(
            "apiVersion: v2\nname: {name}\ndescription: The operator {name} for {}\ntype: application\nversion: \
             0.1.0\nappVersion: 0.1.0\n",
            project.domain
        ),
    );
    let values = format!(
        "# The container image of the operator.\nimage: {image}\n# One of several replicas reconciles; all answer \
         webhooks.\nreplicas: 1\n"
    );
    files.insert(format!("{root}/values.yaml"), values);
    files
}

/// A document with Helm's expressions for what an installation chooses.
fn templated(document: &Document) -> String {
    let text = document.text.replace(CHART_NAMESPACE, "{{ .Release.Namespace }}");
    let text = text.replace(CHART_IMAGE, "{{ .Values.image }}");
    match document.kind() {
        "Deployment" => text.replace("\n  replicas: 1\n", "\n  replicas: {{ .Values.replicas }}\n"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::project::Language;

    const STREAM: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: redises.cache.acme.io}
spec: {group: cache.acme.io, names: {plural: redises}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: shop, namespace: namespace-of-the-release}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: 'namespace-of-the-release:shop', namespace: other}
---
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 1
  image: image-of-the-release
---
";

    fn project() -> Project {
        Project {
            root: std::path::PathBuf::new(),
            name: "shop".to_owned(),
            domain: "acme.io".to_owned(),
            lang: Language::Rust,
            module: String::new(),
            apis: Vec::new(),
        }
    }

    #[test]
    fn every_document_has_a_file_and_every_folder_a_kustomization() {
        let files = kustomize_files(&project(), &documents(STREAM).unwrap());
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "config/crd/cache.acme.io_redises.yaml",
                "config/crd/kustomization.yaml",
                "config/default/kustomization.yaml",
                "config/default/namespace.yaml",
                "config/manager/deployment.yaml",
                "config/manager/kustomization.yaml",
                "config/rbac/kustomization.yaml",
                "config/rbac/role.yaml",
                "config/rbac/role_2.yaml",
            ]
        );
        let lists: Vec<&str> = files["config/default/kustomization.yaml"].lines().skip(3).collect();
        assert_eq!(lists, ["- namespace.yaml", "- ../crd", "- ../manager", "- ../rbac"]);
    }

    #[test]
    fn a_chart_leaves_namespace_image_and_replicas_to_the_release() {
        let files = chart_files(&project(), "shop:1.0", &documents(STREAM).unwrap());
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "charts/shop/Chart.yaml",
                "charts/shop/crds/cache.acme.io_redises.yaml",
                "charts/shop/templates/deployment.yaml",
                "charts/shop/templates/role.yaml",
                "charts/shop/templates/role_2.yaml",
                "charts/shop/values.yaml",
            ]
        );
        let deployment = &files["charts/shop/templates/deployment.yaml"];
        assert!(deployment.ends_with("  replicas: {{ .Values.replicas }}\n  image: {{ .Values.image }}\n"));
        assert!(files["charts/shop/templates/role_2.yaml"].contains("'{{ .Release.Namespace }}:shop'"));
        assert!(files["charts/shop/values.yaml"].contains("image: shop:1.0\n"));
        assert!(!files.values().any(|text| text.contains(CHART_NAMESPACE) || text.contains(CHART_IMAGE)));
    }
}
