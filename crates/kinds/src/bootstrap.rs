//! The objects that a new cluster holds: roles and bindings, priority classes, flow schemas, namespaces.

static TEXT: &str = include_str!("../data/bootstrap.txt");

/// Each object as JSON, with the path of its collection: `/api/v1/namespaces`. Roles and role bindings stand
/// under a path without their namespace; their metadata names it.
pub fn bootstrap() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut path = "";
    TEXT.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| match line.strip_prefix('@') {
        Some(next) => {
            path = next;
            None
        }
        None => Some((path, line)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_says_what_it_is() {
        let mut namespaces = Vec::new();
        for (path, object) in bootstrap() {
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            let (group, version) =
                object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
            let kind = object["kind"].as_str().unwrap();
            assert!(crate::types().kind(group, version, kind).is_some(), "{path} {object}");
            if path == "/api/v1/namespaces" {
                namespaces.push(object["metadata"]["name"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(namespaces, ["default", "kube-node-lease", "kube-public", "kube-system"]);
        assert_eq!(bootstrap().count(), 181);
    }
}
