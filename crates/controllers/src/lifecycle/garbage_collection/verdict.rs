//! What becomes of an object, by what the server says of its owners.

use super::{graph::Dependents, identity::Uid};

/// The owners of an object, as the server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// They exist.
    pub(super) solid: Vec<Uid>,
    /// They do not exist.
    pub(super) dangling: Vec<Uid>,
    /// They are being deleted, and wait for their dependents.
    pub(super) waiting: Vec<Uid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    /// It has other owners: the references to these are removed.
    Unlink(Vec<Uid>),
    Delete(Policy),
    /// As `Delete(Policy::Foreground)`, after its references no longer block its owners: they may wait for each
    /// other in a circle.
    UnblockAndDelete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Background,
    Foreground,
    Orphan,
}

pub(super) fn verdict(owners: Owners, dependents: Dependents, finalizers: &[String]) -> Verdict {
    let Owners { solid, dangling, waiting } = owners;
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if solid.is_empty() && dangling.is_empty() && waiting.is_empty() {
        return Verdict::Keep;
    }
    if !solid.is_empty() {
        // Waiting owners too: they would wait for this object for ever.
        let unlinked: Vec<Uid> = dangling.into_iter().chain(waiting).collect();
        return if unlinked.is_empty() { Verdict::Keep } else { Verdict::Unlink(unlinked) };
    }
    match dependents {
        Dependents::SomeAwaitTheirs if !waiting.is_empty() => Verdict::UnblockAndDelete,
        Dependents::Some if !waiting.is_empty() => Verdict::Delete(Policy::Foreground),
        // Kubernetes: what the finalizers of the object ask for already.
        _ if has(super::identity::ORPHAN) => Verdict::Delete(Policy::Orphan),
        _ if has(super::identity::FOREGROUND) => Verdict::Delete(Policy::Foreground),
        _ => Verdict::Delete(Policy::Background),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_lives_as_long_as_one_of_its_owners() {
        use Dependents::{None, Some, SomeAwaitTheirs};
        let delete = Verdict::Delete;
        let unlink = |uids: &[&str]| Verdict::Unlink(uids.iter().map(|&uid| uid.into()).collect());
        for (solid, dangling, waiting, dependents, finalizer, expected) in [
            ("", "", "", None, "", Verdict::Keep),
            ("s", "", "", None, "", Verdict::Keep),
            ("s", "d", "", None, "", unlink(&["d"])),
            ("s", "d", "w", Some, "", unlink(&["d", "w"])),
            ("", "d", "", None, "", delete(Policy::Background)),
            ("", "d", "", Some, "", delete(Policy::Background)),
            ("", "d", "", Some, "orphan", delete(Policy::Orphan)),
            ("", "d", "", Some, "foregroundDeletion", delete(Policy::Foreground)),
            ("", "", "w", None, "", delete(Policy::Background)),
            ("", "", "w", Some, "", delete(Policy::Foreground)),
            ("", "d", "w", Some, "orphan", delete(Policy::Foreground)),
            ("", "", "w", SomeAwaitTheirs, "", Verdict::UnblockAndDelete),
            ("", "d", "", SomeAwaitTheirs, "", delete(Policy::Background)),
        ] {
            let list = |text: &str| -> Vec<Uid> { text.split_whitespace().map(Uid::from).collect() };
            let owners = Owners { solid: list(solid), dangling: list(dangling), waiting: list(waiting) };
            let found = verdict(owners, dependents, &[finalizer.to_owned()]);
            assert_eq!(found, expected, "{solid:?} {dangling:?} {waiting:?} {dependents:?} {finalizer:?}");
        }
    }
}
