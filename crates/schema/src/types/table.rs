//! The table: types by id, by name and by kind; one table may extend another.

use std::fmt;

use super::Type;

/// The index of a [`Type`] in its [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

/// A set of types that refer to each other by [`TypeId`].
///
/// A table may extend another ([`Types::over`]): a custom resource adds only its own types and shares
/// `ObjectMeta` and others with the built-in kinds.
#[derive(Default)]
pub struct Types {
    below: Option<&'static Types>,
    /// The number of types in the tables below: the id of the first one here.
    first: u32,
    types: Vec<Type>,
    /// Positions in `types`, sorted by name.
    by_name: Vec<u32>,
    /// Positions in `types` of those that are kinds, sorted by group, version and kind.
    by_kind: Vec<u32>,
}

impl Types {
    /// An empty table that extends `below`: ids of that table stay valid here.
    #[must_use]
    pub fn over(below: &'static Types) -> Self {
        Self { below: Some(below), first: below.len(), ..Self::default() }
    }

    /// The number of types, those below included.
    #[must_use]
    pub fn len(&self) -> u32 {
        // Ids are u32 and count up by one.
        self.first + u32::try_from(self.types.len()).unwrap_or(u32::MAX)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id that the next [`Types::add`] hands out: for a type that contains itself.
    #[must_use]
    pub fn next_id(&self) -> TypeId {
        TypeId(self.len())
    }

    /// Adds a type. The later of two with one name wins.
    pub fn add(&mut self, of: Type) -> TypeId {
        let id = self.next_id();
        let position = id.0 - self.first;
        let by_name = |other: &u32| self.types[*other as usize].name <= of.name;
        // Most tables are added in sorted order.
        let at = match self.by_name.last() {
            Some(last) if !by_name(last) => self.by_name.partition_point(by_name),
            _ => self.by_name.len(),
        };
        self.by_name.insert(at, position);
        if of.kind.is_some() {
            let by_kind = |other: &u32| self.types[*other as usize].kind <= of.kind;
            self.by_kind.insert(self.by_kind.partition_point(by_kind), position);
        }
        self.types.push(of);
        id
    }

    /// The type of an id that this table, or one below, handed out.
    ///
    /// # Panics
    /// On an id of some other table.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Type {
        match self.below {
            Some(below) if id.0 < self.first => below.get(id),
            _ => &self.types[(id.0 - self.first) as usize],
        }
    }

    /// The type with this OpenAPI name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<(TypeId, &Type)> {
        let after = self.by_name.partition_point(|at| *self.types[*at as usize].name <= *name);
        self.before(&self.by_name, after)
            .filter(|(_, found)| found.name == name)
            .or_else(|| self.below.and_then(|below| below.named(name)))
    }

    /// The type of a group, version and kind.
    #[must_use]
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<(TypeId, &Type)> {
        let wanted = (group, version, kind);
        let after = self.by_kind.partition_point(|at| self.types[*at as usize].key() <= wanted);
        self.before(&self.by_kind, after)
            .filter(|(_, found)| found.key() == wanted)
            .or_else(|| self.below.and_then(|below| below.kind(group, version, kind)))
    }

    /// Every type, those below first, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0..self.len()).map(|id| (TypeId(id), self.get(TypeId(id))))
    }

    fn before(&self, order: &[u32], after: usize) -> Option<(TypeId, &Type)> {
        let position = *order.get(after.checked_sub(1)?)?;
        Some((TypeId(self.first + position), self.types.get(position as usize)?))
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Types").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_names_are_found_through_the_layers() {
        static BELOW: std::sync::LazyLock<Types> = std::sync::LazyLock::new(|| {
            let mut types = Types::default();
            for (group, version, kind) in [("b", "v1", "Z"), ("", "v1", "Pod"), ("b", "v1", "A")] {
                let name = format!("{group}.{version}.{kind}");
                types.add(Type::new(name, Vec::new()).of_kind(group, version, kind));
            }
            types.add(Type::new("plain", Vec::new()));
            types
        });
        let mut types = Types::over(&BELOW);
        let own = types.add(Type::new("own", Vec::new()).of_kind("x", "v1", "Own"));
        assert_eq!(own, TypeId(4));
        assert_eq!(types.kind("x", "v1", "Own").map(|(id, _)| id), Some(own));
        assert_eq!(types.kind("", "v1", "Pod").map(|(id, _)| id), Some(TypeId(1)));
        assert_eq!(types.named("b.v1.A").map(|(id, _)| id), Some(TypeId(2)));
        assert_eq!(types.named("plain").map(|(id, _)| id), Some(TypeId(3)));
        assert!(types.kind("", "", "").is_none() && types.named("b.v1.B").is_none());
        assert_eq!(types.iter().count(), 5);
    }
}
