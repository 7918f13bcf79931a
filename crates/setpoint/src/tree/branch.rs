//! Objects as a tree, and the lines that draw it.

use crate::client::family::owner_of;
use serde_json::Value;

/// The characters of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeLines {
    middle: &'static str,
    last: &'static str,
    pass: &'static str,
    pub(super) mark: &'static str,
}

impl TreeLines {
    pub(super) const BOXES: TreeLines =
        TreeLines { middle: "├── ", last: "└── ", pass: "│   ", mark: "◀" };
    pub(super) const ASCII: TreeLines = TreeLines { middle: "|-- ", last: "`-- ", pass: "|   ", mark: "<--" };
}

#[derive(Debug)]
pub(super) struct Branch<'a> {
    pub(super) object: &'a Value,
    pub(super) children: Vec<Branch<'a>>,
}

/// The branches below an object, in the order of the objects. Each object is there once.
pub(super) fn below<'a>(parent: &Value, objects: &'a [Value]) -> Vec<Branch<'a>> {
    let uid = &parent["metadata"]["uid"];
    let children = objects.iter().filter(|object| {
        // Two owners may both be here: the controlling one, or the first of them, has it.
        let known = |owner: &&Value| {
            owner["uid"] == *uid || objects.iter().any(|other| other["metadata"]["uid"] == owner["uid"])
        };
        let own = owner_of(object).filter(|owner| known(owner));
        let any = || object["metadata"]["ownerReferences"].as_array()?.iter().find(known);
        own.or_else(any).is_some_and(|owner| owner["uid"] == *uid)
    });
    children.map(|object| Branch { object, children: below(object, objects) }).collect()
}

impl<'a> Branch<'a> {
    /// Each object with what is drawn before it.
    pub(super) fn lines(&self, lines: TreeLines) -> Vec<(String, &'a Value)> {
        let mut out = vec![(String::new(), self.object)];
        self.push(lines, "", &mut out);
        out
    }

    fn push(&self, lines: TreeLines, prefix: &str, out: &mut Vec<(String, &'a Value)>) {
        for (at, child) in self.children.iter().enumerate() {
            let is_last = at + 1 == self.children.len();
            out.push((format!("{prefix}{}", if is_last { lines.last } else { lines.middle }), child.object));
            let rest = if is_last { "    " } else { lines.pass };
            child.push(lines, &format!("{prefix}{rest}"), out);
        }
    }
}
