//! Writes of EndpointSlices: slices that would be deleted are used for those that would be created.

use crate::pod;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use operator::Failure;

pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// What must be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SliceWrites {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
}

impl SliceWrites {
    pub(super) fn extend(&mut self, more: SliceWrites) {
        self.create.extend(more.create);
        self.update.extend(more.update);
        self.delete.extend(more.delete);
    }

    /// Turns a create and a delete into an update, where `may_reuse` allows it.
    pub(super) fn reuse(&mut self, may_reuse: impl Fn(&EndpointSlice) -> bool) {
        let mut kept = Vec::new();
        for old in std::mem::take(&mut self.delete) {
            let fits = |new: &EndpointSlice| new.address_type == old.address_type;
            match self.create.iter().rposition(fits).filter(|_| may_reuse(&old)) {
                Some(position) => {
                    let mut new = self.create.remove(position);
                    new.metadata.name = old.metadata.name.clone();
                    new.metadata.resource_version = old.metadata.resource_version.clone();
                    self.update.push(new);
                }
                None => kept.push(old),
            }
        }
        self.delete = kept;
    }

    /// Writes everything; creates nothing if the owner `is_deleting`, because its slices are deleted with it.
    pub(super) async fn carry_out(&self, api: &Api<EndpointSlice>, is_deleting: bool) -> Result<(), Failure> {
        for slice in self.create.iter().filter(|_| !is_deleting) {
            match api.create(&PostParams::default(), slice).await {
                Ok(_) => {}
                // Every create fails from now on.
                Err(error) if pod::is_namespace_terminating(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        for slice in &self.update {
            api.replace(&slice.name_any(), &PostParams::default(), slice).await?;
        }
        for slice in &self.delete {
            match api.delete(&slice.name_any(), &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Kubernetes: a dash after the name, unless that is too long.
pub(super) fn generate_name(name: &str) -> String {
    /// A name of an object has 253 letters at most.
    const MAX_NAME: usize = 253;
    if name.len() < MAX_NAME { format!("{name}-") } else { name.to_owned() }
}

/// The same for equal sets of ports in any order.
pub(super) fn port_key(ports: &[EndpointPort]) -> Vec<(String, String, Option<i32>, String)> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut key: Vec<_> = ports
        .iter()
        .map(|it| (text(&it.name), text(&it.protocol), it.port, text(&it.app_protocol)))
        .collect();
    key.sort();
    key
}

/// What makes an endpoint the same one as before, though its conditions may have changed.
pub(super) type EndpointIdentity = (Vec<String>, String, String, String);

pub(super) fn identity(endpoint: &Endpoint) -> EndpointIdentity {
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    let target = endpoint.target_ref.as_ref();
    let mut addresses = endpoint.addresses.clone();
    addresses.sort();
    (
        addresses,
        text(endpoint.hostname.as_ref()),
        text(target.and_then(|target| target.namespace.as_ref())),
        text(target.and_then(|target| target.name.as_ref())),
    )
}

/// Whether they are equal apart from hints, which are compared separately.
pub(super) fn is_same(first: &Endpoint, second: &Endpoint) -> bool {
    let target = |endpoint: &Endpoint| {
        endpoint.target_ref.clone().map(|mut target| {
            target.resource_version = None;
            target
        })
    };
    first.node_name == second.node_name
        && first.zone == second.zone
        && first.conditions == second.conditions
        && target(first) == target(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_reused_slice_keeps_its_name_and_the_prefix_of_generated_ones() {
        let slice = |metadata: Value| -> EndpointSlice {
            let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": []});
            serde_json::from_value(slice).unwrap()
        };
        let mut writes = SliceWrites {
            create: vec![slice(json!({"generateName": "web-"}))],
            delete: vec![slice(json!({"name": "web-x", "resourceVersion": "7"}))],
            ..SliceWrites::default()
        };
        writes.reuse(|_| true);
        let expected = slice(json!({"name": "web-x", "generateName": "web-", "resourceVersion": "7"}));
        assert_eq!(writes, SliceWrites { update: vec![expected], ..SliceWrites::default() });
    }
}
