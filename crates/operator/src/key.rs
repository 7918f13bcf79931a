//! The namespace and name of an object: what queues hold and reconcilers get.

use kube::{Resource, ResourceExt};
use std::{convert::Infallible, fmt, str::FromStr, sync::Arc};

/// `namespace/name`, or `name` for objects without a namespace. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object with this namespace and name.
    pub fn new(namespace: Option<&str>, name: &str) -> Key {
        match namespace {
            Some(namespace) => Key(format!("{namespace}/{name}").into()),
            None => Key(name.into()),
        }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Key {
        Key::new(object.meta().namespace.as_deref(), &object.name_any())
    }

    /// The text is `namespace/name` or `name`: neither half may hold a slash in Kubernetes.
    pub fn parse(text: &str) -> Key {
        Key(text.into())
    }

    /// The namespace; `None` for objects without one.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name without the namespace.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// `namespace/name` or `name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Key, Infallible> {
        Ok(Key::parse(text))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_namespace_and_a_name() {
        for (namespace, name, text) in [(Some("prod"), "web", "prod/web"), (None, "node-1", "node-1")] {
            let key = Key::new(namespace, name);
            assert_eq!((key.namespace(), key.name(), key.as_str()), (namespace, name, text));
            assert_eq!(key, Key::parse(text));
        }
    }
}
