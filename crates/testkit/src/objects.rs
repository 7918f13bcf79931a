//! Objects of one kind: read, written and removed as the administrator, in one line of a test.
//!
//! What cannot be done ends the test, but for the calls that begin with `try_`.

use crate::Cluster;
use kube::{
    Resource, ResourceExt,
    core::{
        ObjectList, Request,
        params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt::Debug;

/// What a test can read and write.
pub trait Object: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned {}

impl<K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned> Object for K {}

impl Cluster {
    /// Reads an object that is there. The namespace of a kind without is `None`.
    pub async fn get<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str) -> K {
        let namespace = namespace.into();
        let found = self.find(namespace, name).await;
        found.unwrap_or_else(|| panic!("there is no {}", told::<K>(namespace, name)))
    }

    /// Reads an object that may be there.
    pub async fn find<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str) -> Option<K> {
        let namespace = namespace.into();
        let request = at::<K>(namespace).get(name, &GetParams::default());
        match self.send(request).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("cannot read {}: {error}", told::<K>(namespace, name)),
        }
    }

    /// All objects of a kind in a namespace; in all of them where none is named.
    pub async fn list<K: Object>(&self, namespace: impl Into<Option<&str>>) -> Vec<K> {
        let namespace = namespace.into();
        let list: Result<ObjectList<K>, _> = self.send(at::<K>(namespace).list(&ListParams::default())).await;
        list.unwrap_or_else(|error| panic!("cannot list {}: {error}", told::<K>(namespace, "*"))).items
    }

    pub async fn create<K: Object>(&self, object: &K) -> K {
        let created = self.try_create(object).await;
        created.unwrap_or_else(|error| panic!("cannot create {}: {error}", told_of(object)))
    }

    pub async fn try_create<K: Object>(&self, object: &K) -> kube::Result<K> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let namespace = object.namespace();
        self.send(at::<K>(namespace.as_deref()).create(&PostParams::default(), body)).await
    }

    /// Puts the object in place of the one that is there, if that has the same resourceVersion.
    pub async fn update<K: Object>(&self, object: &K) -> K {
        let updated = self.try_update(object).await;
        updated.unwrap_or_else(|error| panic!("cannot update {}: {error}", told_of(object)))
    }

    pub async fn try_update<K: Object>(&self, object: &K) -> kube::Result<K> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let namespace = object.namespace();
        let request = at::<K>(namespace.as_deref());
        self.send(request.replace(&object.name_any(), &PostParams::default(), body)).await
    }

    /// Merges `patch` into an object.
    pub async fn patch<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str, patch: &Value) -> K {
        let namespace = namespace.into();
        let patched = self.try_patch(namespace, name, patch).await;
        patched.unwrap_or_else(|error| panic!("cannot patch {}: {error}", told::<K>(namespace, name)))
    }

    pub async fn try_patch<K: Object>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
        patch: &Value,
    ) -> kube::Result<K> {
        let request = at::<K>(namespace.into());
        self.send(request.patch(name, &PatchParams::default(), &Patch::Merge(patch))).await
    }

    /// Merges `{"status": …}` into the status of an object, as the controller would that is not
    /// there in this test.
    pub async fn patch_status<K: Object>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
        patch: &Value,
    ) -> K {
        let namespace = namespace.into();
        let request = at::<K>(namespace);
        let request =
            request.patch_subresource("status", name, &PatchParams::default(), &Patch::Merge(patch));
        let patched = self.send(request).await;
        patched
            .unwrap_or_else(|error| panic!("cannot patch status of {}: {error}", told::<K>(namespace, name)))
    }

    /// Asks for an object to be deleted; finalizers may keep it for a while.
    pub async fn delete<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str) {
        let namespace = namespace.into();
        let deleted = self.try_delete::<K>(namespace, name).await;
        deleted.unwrap_or_else(|error| panic!("cannot delete {}: {error}", told::<K>(namespace, name)));
    }

    pub async fn try_delete<K: Object>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
    ) -> kube::Result<()> {
        let request = at::<K>(namespace.into()).delete(name, &DeleteParams::default());
        self.send::<Value>(request).await.map(drop)
    }

    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<T> {
        self.inner.admin.request(request.map_err(kube::Error::BuildRequest)?).await
    }
}

fn at<K: Object>(namespace: Option<&str>) -> Request {
    Request::new(K::url_path(&(), namespace))
}

fn told<K: Object>(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{} {namespace}/{name}", K::kind(&())),
        None => format!("{} {name}", K::kind(&())),
    }
}

fn told_of<K: Object>(object: &K) -> String {
    told::<K>(object.namespace().as_deref(), &object.name_any())
}
