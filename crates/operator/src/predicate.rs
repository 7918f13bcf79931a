//! A change in, whether it is worth a reconcile out.
//!
//! Predicates join with `&`, `|` and `!`:
//!
//! ```
//! use operator::predicate::{annotations, deletion, generation};
//!
//! let worth_it = generation() | (annotations() & !deletion());
//! ```

use crate::cache::Change;
use kube::core::Selector;
use std::{
    fmt,
    ops::{BitAnd, BitOr, Not},
    sync::Arc,
};

/// Lets some changes pass. Cheap to clone.
#[derive(Clone)]
pub struct Predicate(Arc<dyn Fn(&Change<'_>) -> bool + Send + Sync>);

impl Predicate {
    /// Your own. It sees each change once, and must not wait for anything.
    pub fn new(passes: impl Fn(&Change<'_>) -> bool + Send + Sync + 'static) -> Predicate {
        Predicate(Arc::new(passes))
    }

    pub fn pass(&self, change: &Change<'_>) -> bool {
        (self.0)(change)
    }
}

/// What is desired changed, or the object came or went: the status of an object does not pass.
///
/// Kinds that do not count generations pass with every change.
pub fn generation() -> Predicate {
    changed(|pair| match pair {
        (before, after) if before.generation().is_none() || after.generation().is_none() => {
            before.resource_version() != after.resource_version()
        }
        (before, after) => {
            before.generation() != after.generation() || before.is_deleting() != after.is_deleting()
        }
    })
}

/// The labels changed, or the object came or went.
pub fn labels() -> Predicate {
    changed(|(before, after)| before.labels() != after.labels())
}

/// The annotations changed, or the object came or went.
pub fn annotations() -> Predicate {
    changed(|(before, after)| before.annotations() != after.annotations())
}

/// Anything changed: what is told once more does not pass.
pub fn resource_version() -> Predicate {
    changed(|(before, after)| before.resource_version() != after.resource_version())
}

/// The object was told to go, or went.
pub fn deletion() -> Predicate {
    Predicate::new(|change| {
        let was_leaving = change.before.is_some_and(|before| before.is_deleting());
        change.after.is_none_or(|after| after.is_deleting() && !was_leaving)
    })
}

/// The object came, as far as this process knows.
pub fn creation() -> Predicate {
    Predicate::new(|change| change.before.is_none())
}

/// The selector matches the object, or did before the change.
pub fn labelled(selector: &Selector) -> Predicate {
    // It can always be written down; what cannot be read matches nothing.
    let selector = selector.to_string().parse::<api::label_selector::Selector>();
    Predicate::new(move |change| {
        let Ok(selector) = &selector else { return false };
        [change.before, change.after].into_iter().flatten().any(|item| selector.matches(&item.labels()))
    })
}

/// Whether the object is not what it was; that it came or went always counts.
fn changed(
    differs: impl Fn((&crate::cache::Item, &crate::cache::Item)) -> bool + Send + Sync + 'static,
) -> Predicate {
    Predicate::new(move |change| match (change.before, change.after) {
        (Some(before), Some(after)) => differs((before, after)),
        _ => true,
    })
}

impl BitAnd for Predicate {
    type Output = Predicate;
    fn bitand(self, other: Predicate) -> Predicate {
        Predicate::new(move |change| self.pass(change) && other.pass(change))
    }
}

impl BitOr for Predicate {
    type Output = Predicate;
    fn bitor(self, other: Predicate) -> Predicate {
        Predicate::new(move |change| self.pass(change) || other.pass(change))
    }
}

impl Not for Predicate {
    type Output = Predicate;
    fn not(self) -> Predicate {
        Predicate::new(move |change| !self.pass(change))
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Predicate")
    }
}
