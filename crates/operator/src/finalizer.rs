//! Keeps a finalizer on an object that has something outside of the cluster, until that is cleaned up.
//!
//! Finalizers are written as JSON patches that test what they change: they cannot remove other finalizers,
//! change another object of the same name, or be added to an object that is being deleted.

use crate::{
    Failure, Next,
    client::{self, CachedRead},
    retry,
};
use api::name::Format;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{fmt::Debug, future::Future};

/// Each attempt reads the object again, and finalizers change rarely.
const ATTEMPTS: usize = 5;

/// Whether the object is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle<K> {
    /// Its finalizer is set: what is created outside of the cluster now will be cleaned up.
    Live(K),
    /// Undo what was created outside of the cluster. The finalizer is removed when this returns `Next::Settled`.
    Deleting(K),
}

/// What to do about the finalizer of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Add the finalizer before the first work.
    AddFinalizer,
    /// It has the finalizer: work.
    Work,
    /// It is being deleted: undo the work, then remove the finalizer.
    CleanUp,
    /// It is being deleted, and does not have our finalizer.
    Nothing,
}

/// Calls `work` with the object when its finalizer is set, and when it is being deleted.
///
/// The finalizer is removed when `work` returns [`Next::Settled`] for an object that is being deleted; if it
/// returns anything else, the finalizer stays. If the object is deleted meanwhile, this returns
/// [`Next::Settled`].
///
/// A cached object may have been cleaned up and deleted by the process that led before, and `work` would
/// create again what nothing will ever clean up. So the first call of a process for a live object reads it
/// from the server; with the manager's client, later ones do not.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use operator::{Context, Failure, Key, Next, finalizer::{self, Lifecycle}};
///
/// # async fn create_bucket(_: &str) {}
/// # async fn delete_bucket(_: &str) {}
/// async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
///     let Some(map) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
///     let maps = context.namespaced::<ConfigMap>(&key);
///     finalizer::guard(&maps, (*map).clone(), "example.com/bucket", async |map| {
///         match map {
///             Lifecycle::Live(_) => create_bucket(key.name()).await,
///             Lifecycle::Deleting(_) => delete_bucket(key.name()).await,
///         }
///         Ok(Next::Settled)
///     })
///     .await
/// }
/// ```
pub async fn guard<K, F, Fut>(api: &Api<K>, object: K, finalizer: &str, work: F) -> Result<Next, Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
    F: FnOnce(Lifecycle<K>) -> Fut,
    Fut: Future<Output = Result<Next, Failure>>,
{
    check(finalizer)?;
    let object = match next_action(object.meta(), finalizer) {
        Action::AddFinalizer => match edit(api, object, finalizer, Action::AddFinalizer).await? {
            Some(object) => object,
            None => return Ok(Next::Settled),
        },
        Action::Work => match confirmed(api, object, finalizer).await? {
            Some(object) => object,
            None => return Ok(Next::Settled),
        },
        _ => object,
    };
    match next_action(object.meta(), finalizer) {
        Action::Work => work(Lifecycle::Live(object)).await,
        Action::CleanUp => match work(Lifecycle::Deleting(object.clone())).await? {
            Next::Settled => remove(api, object, finalizer).await.map(|()| Next::Settled),
            unsettled => Ok(unsettled),
        },
        Action::Nothing | Action::AddFinalizer => Ok(Next::Settled),
    }
}

/// The object if the server has it like this, or as the server has it; `None` if it is deleted.
async fn confirmed<K>(api: &Api<K>, object: K, finalizer: &str) -> Result<Option<K>, Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let (name, uid) = (object.name_any(), object.uid());
    let client = api.clone().into_client();
    let read = CachedRead::AfterConfirmation(uid.clone().unwrap_or_default());
    let found = client::metadata(&client, api.resource_url(), &name, read).await?;
    match found.filter(|found| found.metadata.uid == uid) {
        Some(found) if next_action(&found.metadata, finalizer) == Action::Work => Ok(Some(object)),
        Some(_) => Ok(api.get_opt(&name).await?.filter(|live| live.uid() == uid)),
        None => Ok(None),
    }
}

/// Removes the finalizer from an object that is being deleted, even if others write the object meanwhile.
/// It is no error if there is no finalizer or no object.
pub async fn remove<K>(api: &Api<K>, object: K, finalizer: &str) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    edit(api, object, finalizer, Action::CleanUp).await.map(drop)
}

/// What to do about an object with this metadata.
pub fn next_action(meta: &ObjectMeta, finalizer: &str) -> Action {
    let is_deleting = meta.deletion_timestamp.is_some();
    match (is_deleting, positions(meta, finalizer).next().is_some()) {
        (false, false) => Action::AddFinalizer,
        (false, true) => Action::Work,
        (true, true) => Action::CleanUp,
        (true, false) => Action::Nothing,
    }
}

/// Patches the object until `wanted` is done, and returns it; `None` if it is deleted.
async fn edit<K>(api: &Api<K>, object: K, finalizer: &str, wanted: Action) -> Result<Option<K>, Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let (name, uid) = (object.name_any(), object.uid());
    let mut object = object;
    for attempt in 1..=ATTEMPTS {
        if next_action(object.meta(), finalizer) != wanted {
            return Ok(Some(object));
        }
        let operations = match wanted {
            Action::AddFinalizer => addition(object.meta(), finalizer),
            _ => removal(object.meta(), finalizer),
        };
        let patch = serde_json::from_value(operations).expect("operations are a JSON patch");
        match api.patch(&name, &PatchParams::default(), &Patch::<()>::Json(patch)).await {
            Ok(object) => return Ok(Some(object)),
            Err(error) if retry::is_missing(&error) => return Ok(None),
            Err(error) if attempt == ATTEMPTS => return Err(error.into()),
            Err(error) if retry::is_conflict(&error) || retry::is_invalid(&error) => {}
            Err(error) => return Err(error.into()),
        }
        match api.get_opt(&name).await?.filter(|present| present.uid() == uid) {
            Some(present) => object = present,
            None => return Ok(None),
        }
    }
    Ok(Some(object))
}

fn addition(meta: &ObjectMeta, finalizer: &str) -> Value {
    let mut operations = vec![
        json!({ "op": "test", "path": "/metadata/uid", "value": meta.uid }),
        json!({ "op": "test", "path": "/metadata/deletionTimestamp", "value": null }),
        // The whole list: two clients that add the finalizer at once must not add it twice.
        json!({ "op": "test", "path": "/metadata/finalizers", "value": meta.finalizers }),
    ];
    operations.push(match &meta.finalizers {
        Some(_) => json!({ "op": "add", "path": "/metadata/finalizers/-", "value": finalizer }),
        None => json!({ "op": "add", "path": "/metadata/finalizers", "value": [finalizer] }),
    });
    Value::Array(operations)
}

fn removal(meta: &ObjectMeta, finalizer: &str) -> Value {
    let mut operations = vec![json!({ "op": "test", "path": "/metadata/uid", "value": meta.uid })];
    // From the last to the first: a removal changes the indexes of those behind it.
    for position in positions(meta, finalizer).rev() {
        let path = format!("/metadata/finalizers/{position}");
        operations.push(json!({ "op": "test", "path": path, "value": finalizer }));
        operations.push(json!({ "op": "remove", "path": path }));
    }
    Value::Array(operations)
}

fn positions(meta: &ObjectMeta, finalizer: &str) -> impl DoubleEndedIterator<Item = usize> {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default().iter().enumerate();
    finalizers.filter(move |(_, present)| *present == finalizer).map(|(position, _)| position)
}

/// Kubernetes: only its own finalizers have no domain.
fn check(finalizer: &str) -> Result<(), Failure> {
    let mut problems = Format::QualifiedName.problems(finalizer);
    if !finalizer.contains('/') {
        problems.push("must have a domain, as in example.com/name".into());
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::terminal("BadFinalizer", format!("{finalizer:?} {}", problems.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn meta(finalizers: &[&str], is_deleting: bool) -> ObjectMeta {
        ObjectMeta {
            uid: Some("u".into()),
            deletion_timestamp: is_deleting.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            finalizers: (!finalizers.is_empty()).then(|| finalizers.iter().map(|f| (*f).into()).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn finalizer_and_deletion_decide_the_action() {
        for (finalizers, is_deleting, expected) in [
            (&[][..], false, Action::AddFinalizer),
            (&["b/other"], false, Action::AddFinalizer),
            (&["b/other", "a/mine"], false, Action::Work),
            (&["a/mine"], true, Action::CleanUp),
            (&["b/other"], true, Action::Nothing),
            (&[], true, Action::Nothing),
        ] {
            assert_eq!(next_action(&meta(finalizers, is_deleting), "a/mine"), expected, "{finalizers:?}");
        }
    }

    #[test]
    fn patches_test_what_they_change() {
        let uid = json!({ "op": "test", "path": "/metadata/uid", "value": "u" });
        let live = json!({ "op": "test", "path": "/metadata/deletionTimestamp", "value": null });
        assert_eq!(
            addition(&meta(&[], false), "a/mine"),
            json!([
                uid, live,
                { "op": "test", "path": "/metadata/finalizers", "value": null },
                { "op": "add", "path": "/metadata/finalizers", "value": ["a/mine"] },
            ])
        );
        assert_eq!(
            addition(&meta(&["b/other"], false), "a/mine"),
            json!([
                uid, live,
                { "op": "test", "path": "/metadata/finalizers", "value": ["b/other"] },
                { "op": "add", "path": "/metadata/finalizers/-", "value": "a/mine" },
            ])
        );
        assert_eq!(
            removal(&meta(&["a/mine", "b/other", "a/mine"], true), "a/mine"),
            json!([
                uid,
                { "op": "test", "path": "/metadata/finalizers/2", "value": "a/mine" },
                { "op": "remove", "path": "/metadata/finalizers/2" },
                { "op": "test", "path": "/metadata/finalizers/0", "value": "a/mine" },
                { "op": "remove", "path": "/metadata/finalizers/0" },
            ])
        );
    }

    #[test]
    fn a_finalizer_has_a_domain() {
        for (finalizer, is_good) in
            [("a.example/mine", true), ("mine", false), ("a/", false), ("/mine", false), ("a b/c", false)]
        {
            assert_eq!(check(finalizer).is_ok(), is_good, "{finalizer}");
        }
    }
}
