//! Images: their full names, whether they can be pulled, and the IDs that a runtime would give.

use crate::budget::beginning;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Images that end when they are run without a command: tools, not servers.
const TOOLS: [&str; 14] = [
    "busybox",
    "alpine",
    "perl",
    "bash",
    "ubuntu",
    "debian",
    "python",
    "curl",
    "hello-world",
    "alpine-curl",
    "fedora",
    "centos",
    "node",
    "ruby",
];
const REGISTRY: &str = "docker.io";
/// An image that does nothing until it is stopped, also in a job.
const PAUSE: &str = "pause";
/// The tags of images that no registry has.
const ABSENT_TAGS: [&str; 3] = ["404", "non-existent", "nonexistent"];
/// The registry of images that cannot be pulled: its name starts like this.
const ABSENT_REGISTRY: &str = "invalid";
// Kubernetes: the longest name of a repository.
const MOST_NAME: usize = 255;
/// With the longest tag and digest.
const MOST_REFERENCE: usize = 640;
const MEGABYTE: u64 = 1 << 20;

/// Why an image cannot be pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PullProblem {
    /// Its name cannot be read.
    InvalidName(String),
    /// No registry has it.
    Absent(String),
}

/// The problem of an image, by its name; `None` if it can be pulled.
pub(crate) fn problem(image: &str) -> Option<PullProblem> {
    let has_uppercase = repository(image).contains(char::is_uppercase);
    let is_long = repository(image).len() > MOST_NAME;
    let is_wrong = image.is_empty() || image.contains(char::is_whitespace) || image.len() > MOST_REFERENCE;
    if has_uppercase || is_long || is_wrong {
        let cause = match (has_uppercase, is_long) {
            (true, _) => "repository name must be lowercase",
            (_, true) => "repository name must not be more than 255 characters",
            _ => "invalid reference format",
        };
        let image = beginning(image, MOST_REFERENCE);
        // Kubernetes: this text, with Go's quotes.
        let message = format!(
            "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": {cause}"
        );
        return Some(PullProblem::InvalidName(message));
    }
    let is_absent =
        tag(image).is_some_and(|tag| ABSENT_TAGS.contains(&tag)) || image.starts_with(ABSENT_REGISTRY);
    is_absent.then(|| absent(image))
}

/// The problem of an image that no registry has, as containerd puts it.
pub(crate) fn absent(image: &str) -> PullProblem {
    let name = full_name(image);
    PullProblem::Absent(format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image \"{name}\": failed to resolve reference \
         \"{name}\": {name}: not found"
    ))
}

/// The name with registry and tag, as containerd reports it: `nginx` is `docker.io/library/nginx:latest`.
pub(crate) fn full_name(image: &str) -> String {
    let has_registry =
        image.split_once('/').is_some_and(|(first, _)| first.contains(['.', ':']) || first == "localhost");
    let name = match (has_registry, image.contains('/')) {
        (true, _) => image.to_owned(),
        (false, true) => format!("{REGISTRY}/{image}"),
        (false, false) => format!("{REGISTRY}/library/{image}"),
    };
    if name.contains('@') || tag(&name).is_some() { name } else { format!("{name}:latest") }
}

/// The name with its digest.
pub(crate) fn id(image: &str) -> String {
    let name = full_name(image);
    if name.contains('@') {
        return name;
    }
    format!("{}@sha256:{}", repository(&name), hex(&name))
}

/// Some size, always the same for an image.
pub(crate) fn bytes(image: &str) -> u64 {
    (20 + number(&full_name(image)) % 100) * MEGABYTE
}

/// The ID of one run of a container.
pub(crate) fn container_id(pod_uid: &str, container: &str, run: i32) -> String {
    format!("containerd://{}", hex(&(pod_uid, container, run)))
}

/// Whether an image ends by itself when it runs without a command.
pub(crate) fn is_tool(image: &str) -> bool {
    TOOLS.contains(&short_name(image))
}

/// Whether an image never ends by itself.
pub(crate) fn is_pause(image: &str) -> bool {
    short_name(image) == PAUSE
}

/// The name without registry, tag and digest.
fn short_name(image: &str) -> &str {
    let repository = repository(image);
    repository.rsplit('/').next().unwrap_or(repository)
}

/// The name without tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match tag(image) {
        Some(tag) => &image[..image.len() - tag.len() - 1],
        None => image,
    }
}

fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    image.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'))
}

/// 64 hexadecimal digits, always the same for a value.
fn hex(value: &impl Hash) -> String {
    (0..4u8).map(|part| format!("{:016x}", number(&(value, part)))).collect()
}

/// A number that only depends on the value: a new `DefaultHasher` always has the same keys.
pub(crate) fn number(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_registry_and_tag() {
        for (image, full) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("nginx:1.29", "docker.io/library/nginx:1.29"),
            ("bitnami/redis", "docker.io/bitnami/redis:latest"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("localhost:5000/web", "localhost:5000/web:latest"),
        ] {
            assert_eq!(full_name(image), full);
        }
        let id = id("nginx");
        assert!(id.starts_with("docker.io/library/nginx@sha256:") && id.len() == 31 + 64, "{id}");
    }

    #[test]
    fn some_images_cannot_be_pulled() {
        for (image, is_pulled) in [
            ("nginx", true),
            ("nginx:404", false),
            ("invalid.registry.k8s.io/invalid/alpine:3.1", false),
            ("Nginx", false),
            ("localhost:404/web", true),
        ] {
            assert_eq!(problem(image).is_none(), is_pulled, "{image}");
        }
        let long = "x".repeat(1 << 20);
        for image in [long.clone(), format!("nginx:{long}")] {
            let Some(PullProblem::InvalidName(message)) = problem(&image) else { panic!("it is too long") };
            assert!(message.len() < 2000, "{message}");
        }
        assert!(is_tool("docker.io/library/busybox:1.36") && !is_tool("nginx"));
    }
}
