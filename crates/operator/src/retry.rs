//! Retries writes that end in a conflict, a few times, on fresh state.

use kube::{Api, Resource, ResourceExt, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt::Debug, future::Future, time::Duration};
use world::World;

/// After so many conflicts in a row, the back-off of the queue is the better way.
const ATTEMPTS: u32 = 5;
/// The other write is usually a single one: the first pause is short, later ones double.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// So that two clients that met once do not meet again.
const JITTER: f64 = 0.5;

/// What [`create_or_update`] did, and the object after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written<K> {
    /// There was none.
    Created(K),
    /// It was changed.
    Updated(K),
    /// The object was as wanted; nothing was written.
    Unchanged(K),
}

/// Runs `attempt` again while it ends in a conflict. It must read the state that it depends on.
///
/// The last conflict is returned, and any other result at once.
pub async fn on_conflict<T, F, Fut>(world: &World, mut attempt: F) -> Result<T, kube::Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, kube::Error>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(error) if is_conflict(&error) => world.sleep(world.jitter(pause, JITTER)).await,
            answer => return answer,
        }
        pause *= 2;
    }
    attempt().await
}

/// Reads the object with the name of `blank`, calls `change`, and updates the object if that changed it;
/// or creates it from `blank` if it does not exist.
///
/// Prefer [`crate::apply`], which leaves the fields of other managers alone without reading first.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use operator::retry::{Written, create_or_update};
///
/// testkit::run(|cluster| async move {
///     let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
///     let mut blank = ConfigMap::default();
///     blank.metadata.name = Some("web".to_owned());
///     let write = |size: &'static str| {
///         let (world, maps, blank) = (cluster.world(), &maps, blank.clone());
///         create_or_update(world, maps, blank, move |map| {
///             map.data.get_or_insert_default().insert("size".to_owned(), size.to_owned());
///         })
///     };
///     assert!(matches!(write("small").await.unwrap(), Written::Created(_)));
///     assert!(matches!(write("small").await.unwrap(), Written::Unchanged(_)));
///     assert!(matches!(write("large").await.unwrap(), Written::Updated(_)));
/// });
/// ```
pub async fn create_or_update<K>(
    world: &World,
    api: &Api<K>,
    blank: K,
    change: impl Fn(&mut K),
) -> Result<Written<K>, kube::Error>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let (name, blank, change) = (&blank.name_any(), &blank, &change);
    on_conflict(world, || async move {
        let Some(present) = api.get_opt(name).await? else {
            let mut wanted = blank.clone();
            change(&mut wanted);
            return api.create(&PostParams::default(), &wanted).await.map(Written::Created);
        };
        let mut wanted = present.clone();
        change(&mut wanted);
        if is_same(&present, &wanted)? {
            return Ok(Written::Unchanged(present));
        }
        api.replace(name, &PostParams::default(), &wanted).await.map(Written::Updated)
    })
    .await
}

impl<K> Written<K> {
    /// The object.
    pub fn into_object(self) -> K {
        match self {
            Written::Created(object) | Written::Updated(object) | Written::Unchanged(object) => object,
        }
    }
}

/// Whether the object has changed meanwhile: the same write on fresh state may succeed.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether what was to be written or read is not there.
pub fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// A JSON patch whose `test` did not hold is answered like an object that breaks a rule.
pub(crate) fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422)
}

fn is_same<K: Serialize>(one: &K, other: &K) -> Result<bool, kube::Error> {
    let [one, other] = [one, other].map(serde_json::to_value);
    Ok(one.map_err(kube::Error::SerdeError)? == other.map_err(kube::Error::SerdeError)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use std::cell::Cell;

    fn refusal(code: u16, reason: &str) -> kube::Error {
        kube::Error::Api(Status::failure("no", reason).with_code(code).boxed())
    }

    #[test]
    fn conflicts_are_retried_a_bounded_number_of_times() {
        let cases = [(0, 409, 1, true), (3, 409, 4, true), (9, 409, 5, false), (9, 404, 1, false)];
        for (failures, code, attempts, is_done) in cases {
            let run = world::simulate(7, |world| async move {
                let count = Cell::new(0);
                let answer = on_conflict(&world, || async {
                    count.set(count.get() + 1);
                    if count.get() <= failures { Err(refusal(code, "Conflict")) } else { Ok(()) }
                })
                .await;
                (count.get(), answer.is_ok())
            });
            assert_eq!(run.unwrap().output, (attempts, is_done));
        }
    }
}
