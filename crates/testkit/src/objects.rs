//! Reads, writes and deletes objects as the administrator, in one line of a test each.
//!
//! An error ends the test, except in functions that start with `try_`.

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

/// An object with a Rust type.
pub trait Object: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned {}

impl<K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned> Object for K {}

impl Cluster {
    /// Reads an object that must exist. The namespace is `None` for cluster-scoped kinds.
    pub async fn get<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str) -> K {
        let namespace = namespace.into();
        let found = self.find(namespace, name).await;
        found.unwrap_or_else(|| panic!("there is no {}", describe::<K>(namespace, name)))
    }

    /// Reads an object that may exist.
    pub async fn find<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str) -> Option<K> {
        let namespace = namespace.into();
        let request = request::<K>(namespace).get(name, &GetParams::default());
        match self.send(request).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("cannot read {}: {error}", describe::<K>(namespace, name)),
        }
    }

    /// All objects of a kind in a namespace, or in all of them with `None`.
    pub async fn list<K: Object>(&self, namespace: impl Into<Option<&str>>) -> Vec<K> {
        let namespace = namespace.into();
        let list: Result<ObjectList<K>, _> =
            self.send(request::<K>(namespace).list(&ListParams::default())).await;
        list.unwrap_or_else(|error| panic!("cannot list {}: {error}", describe::<K>(namespace, "*"))).items
    }

    /// Creates an object.
    pub async fn create<K: Object>(&self, object: &K) -> K {
        let created = self.try_create(object).await;
        created.unwrap_or_else(|error| panic!("cannot create {}: {error}", describe_object(object)))
    }

    /// As [`Cluster::create`], with the refusal as an error.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// testkit::run(|cluster| async move {
    ///     let mut map = ConfigMap::default();
    ///     map.metadata.name = Some("not a name".into());
    ///     map.metadata.namespace = Some("default".into());
    ///     let refused = cluster.try_create(&map).await.unwrap_err();
    ///     assert!(refused.to_string().contains("metadata.name: Invalid value"), "{refused}");
    /// });
    /// ```
    pub async fn try_create<K: Object>(&self, object: &K) -> kube::Result<K> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let namespace = object.namespace();
        self.send(request::<K>(namespace.as_deref()).create(&PostParams::default(), body)).await
    }

    /// Updates an object; a conflict if it does not have the same resourceVersion.
    pub async fn update<K: Object>(&self, object: &K) -> K {
        let updated = self.try_update(object).await;
        updated.unwrap_or_else(|error| panic!("cannot update {}: {error}", describe_object(object)))
    }

    /// As [`Cluster::update`], with the refusal as an error.
    pub async fn try_update<K: Object>(&self, object: &K) -> kube::Result<K> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let namespace = object.namespace();
        let request = request::<K>(namespace.as_deref());
        self.send(request.replace(&object.name_any(), &PostParams::default(), body)).await
    }

    /// Merges `patch` into an object.
    pub async fn patch<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str, patch: &Value) -> K {
        let namespace = namespace.into();
        let patched = self.try_patch(namespace, name, patch).await;
        patched.unwrap_or_else(|error| panic!("cannot patch {}: {error}", describe::<K>(namespace, name)))
    }

    /// As [`Cluster::patch`], with the refusal as an error.
    pub async fn try_patch<K: Object>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
        patch: &Value,
    ) -> kube::Result<K> {
        let request = request::<K>(namespace.into());
        self.send(request.patch(name, &PatchParams::default(), &Patch::Merge(patch))).await
    }

    /// Merges `{"status": …}` into the status of an object, as a controller would that does not run in the test.
    pub async fn patch_status<K: Object>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
        patch: &Value,
    ) -> K {
        let namespace = namespace.into();
        let request = request::<K>(namespace);
        let request =
            request.patch_subresource("status", name, &PatchParams::default(), &Patch::Merge(patch));
        let patched = self.send(request).await;
        patched.unwrap_or_else(|error| {
            panic!("cannot patch status of {}: {error}", describe::<K>(namespace, name))
        })
    }

    /// Deletes an object; finalizers may keep it for a while.
    pub async fn delete<K: Object>(&self, namespace: impl Into<Option<&str>>, name: &str) {
        let namespace = namespace.into();
        let deleted = self.try_delete::<K>(namespace, name).await;
        deleted.unwrap_or_else(|error| panic!("cannot delete {}: {error}", describe::<K>(namespace, name)));
    }

    /// As [`Cluster::delete`], with the refusal as an error.
    pub async fn try_delete<K: Object>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
    ) -> kube::Result<()> {
        let request = request::<K>(namespace.into()).delete(name, &DeleteParams::default());
        self.send::<Value>(request).await.map(drop)
    }

    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<T> {
        self.inner.admin.request(request.map_err(kube::Error::BuildRequest)?).await
    }
}

fn request<K: Object>(namespace: Option<&str>) -> Request {
    Request::new(K::url_path(&(), namespace))
}

fn describe<K: Object>(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{} {namespace}/{name}", K::kind(&())),
        None => format!("{} {name}", K::kind(&())),
    }
}

fn describe_object<K: Object>(object: &K) -> String {
    describe::<K>(object.namespace().as_deref(), &object.name_any())
}
