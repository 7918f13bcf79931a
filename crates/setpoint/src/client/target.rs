//! `pods`, `pod/web`, `deploy,svc` and manifests: which objects the arguments of a command mean.

use super::{
    catalog::{Catalog, ServedResource},
    failure::{ClientError, ClientResult},
    manifest::Manifest,
};

/// What a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentTarget {
    /// All objects of a type, as far as the selectors fit.
    All(ServedResource),
    Object(ObjectTarget),
}

/// One object by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectTarget {
    pub(crate) resource: ServedResource,
    /// `None` for an object without namespace.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// The file that names it; empty if the command line does.
    pub(crate) source: String,
}

impl ObjectTarget {
    pub(crate) fn path(&self) -> String {
        self.resource.object_path(self.namespace.as_deref(), &self.name)
    }

    /// `deployment.apps/web`
    pub(crate) fn short(&self) -> String {
        format!("{}/{}", self.resource.type_name(), self.name)
    }
}

impl ArgumentTarget {
    pub(crate) fn resource(&self) -> &ServedResource {
        match self {
            ArgumentTarget::All(resource) => resource,
            ArgumentTarget::Object(object) => &object.resource,
        }
    }
}

/// The targets of the arguments, in their order.
pub(crate) fn read(
    catalog: &Catalog,
    namespace: &str,
    arguments: &[String],
) -> ClientResult<Vec<ArgumentTarget>> {
    if arguments.iter().any(|argument| argument.contains('/')) {
        if arguments.iter().any(|argument| !argument.contains('/')) {
            // Kubernetes: kubectl's words.
            return Err(ClientError::error(
                "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'",
            ));
        }
        let pairs = arguments.iter().map(|argument| pair(catalog, namespace, argument));
        return pairs.map(|target| target.map(ArgumentTarget::Object)).collect();
    }
    let Some((types, names)) = arguments.split_first() else { return Ok(Vec::new()) };
    let mut targets = Vec::new();
    for word in types.split(',') {
        let category = catalog.category(word);
        let resources = if category.is_empty() { vec![catalog.find(word)?] } else { category };
        for resource in resources {
            if names.is_empty() {
                targets.push(ArgumentTarget::All(resource.clone()));
            }
            targets.extend(names.iter().map(|name| ArgumentTarget::Object(named(resource, namespace, name))));
        }
    }
    Ok(targets)
}

/// The object of `TYPE/NAME`.
pub(crate) fn pair(catalog: &Catalog, namespace: &str, argument: &str) -> ClientResult<ObjectTarget> {
    match argument.split('/').collect::<Vec<_>>().as_slice() {
        [word, name] if !word.is_empty() && !name.is_empty() => {
            Ok(named(catalog.find(word)?, namespace, name))
        }
        [_, _] => Err(ClientError::error(format!(
            "arguments in resource/name form must have a single resource and name: \"{argument}\""
        ))),
        [_] => Err(ClientError::error(format!(
            "name the object as TYPE/NAME, such as pod/web-0: \"{argument}\""
        ))),
        _ => Err(ClientError::error("arguments in resource/name form may not have more than one slash")),
    }
}

/// The object that a manifest describes.
pub(crate) fn of_manifest(
    catalog: &Catalog,
    manifest: &Manifest,
    namespace: &str,
    is_explicit: bool,
) -> ClientResult<ObjectTarget> {
    let Manifest { source, object } = manifest;
    let text = |pointer: &str| object.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let (name, own) = (text("/metadata/name"), text("/metadata/namespace"));
    let Some(resource) = catalog.for_kind(api_version, kind) else {
        return Err(ClientError::error(format!(
            "resource mapping not found for name: \"{name}\" namespace: \"{own}\" from \"{source}\": no matches for kind \"{kind}\" in version \"{api_version}\"\nensure CRDs are installed first"
        )));
    };
    if name.is_empty() {
        return Err(ClientError::error(format!("{source}: the {kind} has no metadata.name; give it one")));
    }
    if resource.is_namespaced && is_explicit && !own.is_empty() && own != namespace {
        return Err(ClientError::error(format!(
            "the namespace from the provided object \"{own}\" does not match the namespace \"{namespace}\". You must pass '--namespace={own}' to perform this operation."
        )));
    }
    let mut target = named(resource, if own.is_empty() { namespace } else { own }, name);
    target.source.clone_from(source);
    Ok(target)
}

fn named(resource: &ServedResource, namespace: &str, name: &str) -> ObjectTarget {
    ObjectTarget {
        resource: resource.clone(),
        namespace: resource.is_namespaced.then(|| namespace.to_owned()),
        name: name.to_owned(),
        source: String::new(),
    }
}
