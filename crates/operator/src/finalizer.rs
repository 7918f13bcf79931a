//! An object with something outside the cluster in, its finalizer kept from first sight to clean-up.
//!
//! Written as JSON patches that test what they change: they cannot drop the finalizers of others,
//! touch a namesake, or come back to an object that is being deleted.

use crate::{Failure, Next, retry};
use api::name::Format;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{fmt::Debug, future::Future};

/// Each attempt reads fresh state, and finalizers change a few times in an object's life.
const ATTEMPTS: usize = 5;

/// Where the object is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life<K> {
    /// It is wanted, and its finalizer is in place: what is made outside now cannot be forgotten.
    Live(K),
    /// It is to go: undo what was made outside. The finalizer goes once this settles.
    Leaving(K),
}

/// What the object needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    AddFinalizer,
    Work,
    CleanUp,
    /// It is leaving and has nothing of ours.
    Nothing,
}

/// Calls `work` with the object when its finalizer is in place, and once more when it is leaving.
///
/// The finalizer is removed when `work` has settled a leaving object; as long as it asks for another
/// look or fails, the finalizer stays. An object that is gone, here or half-way, is settled.
pub async fn guard<K, F, Fut>(api: &Api<K>, object: K, finalizer: &str, work: F) -> Result<Next, Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
    F: FnOnce(Life<K>) -> Fut,
    Fut: Future<Output = Result<Next, Failure>>,
{
    check(finalizer)?;
    let object = match step(object.meta(), finalizer) {
        Step::AddFinalizer => match edit(api, object, finalizer, Step::AddFinalizer).await? {
            Some(object) => object,
            None => return Ok(Next::Settled),
        },
        _ => object,
    };
    match step(object.meta(), finalizer) {
        Step::Work => work(Life::Live(object)).await,
        Step::CleanUp => match work(Life::Leaving(object.clone())).await? {
            Next::Settled => remove(api, object, finalizer).await.map(|()| Next::Settled),
            unsettled => Ok(unsettled),
        },
        Step::Nothing | Step::AddFinalizer => Ok(Next::Settled),
    }
}

/// Removes the finalizer from a leaving object, whatever others do to it meanwhile. That it is not
/// there, or the object is not, is no failure.
pub async fn remove<K>(api: &Api<K>, object: K, finalizer: &str) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    edit(api, object, finalizer, Step::CleanUp).await.map(drop)
}

/// What an object with this metadata needs.
pub fn step(meta: &ObjectMeta, finalizer: &str) -> Step {
    let is_leaving = meta.deletion_timestamp.is_some();
    match (is_leaving, places(meta, finalizer).next().is_some()) {
        (false, false) => Step::AddFinalizer,
        (false, true) => Step::Work,
        (true, true) => Step::CleanUp,
        (true, false) => Step::Nothing,
    }
}

/// Patches until the object no longer needs `wanted`, and gives it back; nothing if it is gone.
async fn edit<K>(api: &Api<K>, object: K, finalizer: &str, wanted: Step) -> Result<Option<K>, Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let (name, uid) = (object.name_any(), object.uid());
    let mut object = object;
    for attempt in 1..=ATTEMPTS {
        if step(object.meta(), finalizer) != wanted {
            return Ok(Some(object));
        }
        let operations = match wanted {
            Step::AddFinalizer => addition(object.meta(), finalizer),
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
        // The whole list, lest two who add at once leave the name there twice.
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
    // From the last to the first: a removal moves what stands behind it.
    for place in places(meta, finalizer).rev() {
        let path = format!("/metadata/finalizers/{place}");
        operations.push(json!({ "op": "test", "path": path, "value": finalizer }));
        operations.push(json!({ "op": "remove", "path": path }));
    }
    Value::Array(operations)
}

fn places(meta: &ObjectMeta, finalizer: &str) -> impl DoubleEndedIterator<Item = usize> {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default().iter().enumerate();
    finalizers.filter(move |(_, present)| *present == finalizer).map(|(place, _)| place)
}

/// Kubernetes takes a name without a domain only from itself.
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

    fn meta(finalizers: &[&str], is_leaving: bool) -> ObjectMeta {
        ObjectMeta {
            uid: Some("u".into()),
            deletion_timestamp: is_leaving.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            finalizers: (!finalizers.is_empty()).then(|| finalizers.iter().map(|f| (*f).into()).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_object_needs_one_thing_at_a_time() {
        for (finalizers, is_leaving, expected) in [
            (&[][..], false, Step::AddFinalizer),
            (&["b/other"], false, Step::AddFinalizer),
            (&["b/other", "a/mine"], false, Step::Work),
            (&["a/mine"], true, Step::CleanUp),
            (&["b/other"], true, Step::Nothing),
            (&[], true, Step::Nothing),
        ] {
            assert_eq!(step(&meta(finalizers, is_leaving), "a/mine"), expected, "{finalizers:?}");
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
