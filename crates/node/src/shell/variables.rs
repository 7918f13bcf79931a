//! The variables of a shell: those of its environment, and what it has changed of them.

use crate::budget::{Budget, OverBudget, STEP};
use std::collections::BTreeMap;

/// Variables by their names; one without a value has an unknown one.
pub(crate) type Variables = BTreeMap<String, Option<String>>;

/// Reads see the changes; the environment itself is never copied.
#[derive(Clone, Debug)]
pub(super) struct Scope<'a> {
    environment: &'a Variables,
    changed: Variables,
    /// What was changed before in the captures that are at work, the oldest first.
    undo: Vec<(String, Option<Option<String>>)>,
    captures: usize,
    /// How often a value has become another one.
    pub(super) changes: usize,
    budget: &'a Budget,
}

/// Where a capture has begun.
pub(super) struct Mark {
    undo: usize,
    changes: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(environment: &'a Variables, budget: &'a Budget) -> Scope<'a> {
        Scope { environment, changed: Variables::new(), undo: Vec::new(), captures: 0, changes: 0, budget }
    }

    /// The value of a variable; `None` if there is no such variable.
    pub(super) fn get(&self, name: &str) -> Option<&Option<String>> {
        self.changed.get(name).or_else(|| self.environment.get(name))
    }

    pub(super) fn set(&mut self, name: &str, value: Option<String>) -> Result<(), OverBudget> {
        self.budget.charge(STEP + 2 * name.len() + value.as_ref().map_or(0, String::len))?;
        if self.get(name) == Some(&value) {
            return Ok(());
        }
        self.changes += 1;
        let before = self.changed.insert(name.to_owned(), value);
        if self.captures > 0 {
            self.undo.push((name.to_owned(), before));
        }
        Ok(())
    }

    /// From now on, changes are those of `$( … )`.
    pub(super) fn begin_capture(&mut self) -> Mark {
        self.captures += 1;
        Mark { undo: self.undo.len(), changes: self.changes }
    }

    /// What a capture has changed is forgotten.
    pub(super) fn end_capture(&mut self, mark: &Mark) {
        self.captures = self.captures.saturating_sub(1);
        self.changes = mark.changes;
        for (name, before) in self.undo.drain(mark.undo..).rev() {
            match before {
                Some(value) => self.changed.insert(name, value),
                None => self.changed.remove(&name),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_leave_variables_as_they_were() {
        let environment: Variables = [("A".to_owned(), Some("1".to_owned()))].into();
        let budget = Budget::new(1 << 20);
        let mut scope = Scope::new(&environment, &budget);
        let text = |text: &str| Some(text.to_owned());
        let outer = scope.begin_capture();
        scope.set("A", text("2")).unwrap();
        scope.set("A", text("3")).unwrap();
        let inner = scope.begin_capture();
        scope.set("A", None).unwrap();
        scope.set("B", text("4")).unwrap();
        scope.end_capture(&inner);
        assert_eq!((scope.get("A"), scope.get("B")), (Some(&text("3")), None));
        scope.end_capture(&outer);
        assert_eq!((scope.get("A"), scope.changes), (Some(&text("1")), 0));
        scope.set("A", text("1")).unwrap();
        assert_eq!(scope.changes, 0, "the same value is no change");
        scope.set("A", text("5")).unwrap();
        assert_eq!((scope.get("A"), scope.changes, scope.undo.len()), (Some(&text("5")), 1, 0));
    }
}
