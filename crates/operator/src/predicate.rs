//! Predicates: which changes of objects lead to a reconcile.
//!
//! Predicates join with `&`, `|` and `!`:
//!
//! ```
//! use operator::predicate::{annotations, deletion, generation};
//!
//! let worth_it = generation() | (annotations() & !deletion());
//! ```

use crate::{
    cache::{Delta, Item},
    source::Cacheable,
};
use kube::core::Selector;
use std::{
    fmt,
    ops::{BitAnd, BitOr, Not},
    sync::Arc,
};

/// Lets some changes pass. Cheap to clone.
#[derive(Clone)]
pub struct Predicate(Arc<dyn Fn(&Delta) -> bool + Send + Sync>);

impl Predicate {
    /// A predicate of your own. It is called once for each change, and must not block.
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::{all, predicate::Predicate};
    ///
    /// // Also a change that takes the annotation away.
    /// let marked = Predicate::new(|delta| delta.items().any(|item| item.annotations().get("sign").is_some()));
    /// let maps = all::<ConfigMap>().when(marked);
    /// ```
    pub fn new(passes: impl Fn(&Delta) -> bool + Send + Sync + 'static) -> Predicate {
        Predicate(Arc::new(passes))
    }

    /// Whether the change passes.
    pub fn pass(&self, delta: &Delta) -> bool {
        (self.0)(delta)
    }
}

/// The generation changed, or the object was created or deleted: changes of the status do not pass.
///
/// For kinds without a generation every change passes.
pub fn generation() -> Predicate {
    changed(|before, after| {
        if before.generation().is_none() || after.generation().is_none() {
            return before.resource_version() != after.resource_version();
        }
        before.generation() != after.generation() || before.is_deleting() != after.is_deleting()
    })
}

/// The labels changed, or the object was created or deleted.
pub fn labels() -> Predicate {
    changed(|before, after| before.labels() != after.labels())
}

/// The annotations changed, or the object was created or deleted.
pub fn annotations() -> Predicate {
    changed(|before, after| before.annotations() != after.annotations())
}

/// The resourceVersion changed: repeated reports of the same object do not pass.
pub fn resource_version() -> Predicate {
    changed(|before, after| before.resource_version() != after.resource_version())
}

/// A predicate on the object before and after a change, as their Rust type; it always passes if the object was
/// created or deleted, or does not fit its type.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use operator::{all, predicate::typed};
///
/// let cordoned = |node: &Node| node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
/// let nodes = all::<Node>().when(typed(move |before, after| cordoned(before) != cordoned(after)));
/// ```
pub fn typed<K: Cacheable>(passes: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Predicate {
    changed(move |before, after| match (before.decode(), after.decode()) {
        (Ok(before), Ok(after)) => passes(&before, &after),
        _ => true,
    })
}

/// The object got its deletionTimestamp, or was deleted.
pub fn deletion() -> Predicate {
    Predicate::new(|delta| {
        let was_deleting = delta.before.as_ref().is_some_and(Item::is_deleting);
        delta.after.as_ref().is_none_or(|after| after.is_deleting() && !was_deleting)
    })
}

/// The object is new to this process.
pub fn creation() -> Predicate {
    Predicate::new(|delta| delta.before.is_none())
}

/// The selector matches the object, or did before the change.
pub fn labelled(selector: &Selector) -> Predicate {
    // A selector that Kubernetes would refuse matches nothing.
    let selector = selector.to_string().parse::<api::label_selector::Selector>();
    Predicate::new(move |delta| {
        let Ok(selector) = &selector else { return false };
        delta.items().any(|item| selector.matches(&item.labels()))
    })
}

/// Passes if the object differs, and always if it was created or deleted.
fn changed(differs: impl Fn(&Item, &Item) -> bool + Send + Sync + 'static) -> Predicate {
    Predicate::new(move |delta| match (&delta.before, &delta.after) {
        (Some(before), Some(after)) => differs(before, after),
        _ => true,
    })
}

impl BitAnd for Predicate {
    type Output = Predicate;
    fn bitand(self, other: Predicate) -> Predicate {
        Predicate::new(move |delta| self.pass(delta) && other.pass(delta))
    }
}

impl BitOr for Predicate {
    type Output = Predicate;
    fn bitor(self, other: Predicate) -> Predicate {
        Predicate::new(move |delta| self.pass(delta) || other.pass(delta))
    }
}

impl Not for Predicate {
    type Output = Predicate;
    fn not(self) -> Predicate {
        Predicate::new(move |delta| !self.pass(delta))
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Predicate")
    }
}
