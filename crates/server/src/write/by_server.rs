//! Writes that the server makes by itself: hooks after a client's write, and its own default objects.

use super::{
    Checked, OwnPart,
    owners::{self, Previous},
};
use crate::{
    Inner,
    call::Call,
    refusal::Refusal,
    request::{Options, Target},
};
use serde_json::Value;
use std::sync::Arc;

/// The field manager of kube-apiserver's own writes.
pub(crate) const KUBE_APISERVER: &str = "kube-apiserver";

/// A write of the server: to which object, under which field manager.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByServer<'a> {
    /// Group, version and resource of a built-in kind.
    pub(crate) resource: (&'a str, &'a str, &'a str),
    pub(crate) namespace: &'a str,
    /// Empty for a create.
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) field_manager: &'a str,
}

impl ByServer<'_> {
    /// The call for this write; `None` where the resource is not served.
    pub(crate) fn call(&self, inner: &Arc<Inner>) -> Option<Call> {
        let (group, version, resource) = self.resource;
        let served = inner.registry.find(group, version, resource)?;
        let target = Target {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            subresource: self.subresource.to_owned(),
            old_watch: false,
        };
        let options = Options { field_manager: self.field_manager.to_owned(), ..Options::default() };
        Some(Call::by_server(inner, served, target, options))
    }
}

/// The next state of an object of which the server has changed a part, with the server as its field
/// manager. `None` where nothing changes.
pub(crate) async fn own_change(
    call: &Call,
    part: OwnPart,
    current: &Value,
    mut draft: Value,
) -> Result<Option<Checked>, Refusal> {
    owners::record(call, Previous::Object(current), &mut draft).await?;
    owners::keep_times(current, &mut draft, |draft| draft == current);
    Ok((draft != *current).then(|| Checked::by_server(part, current, draft)))
}
