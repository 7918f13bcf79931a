//! Warns of files in a volume whose paths overlap: one is the other, or lies within it.

use api::go;

use crate::validate::at::At;

/// A path in a volume, and the source that puts a file there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VolumePath {
    path: String,
    source: String,
}

impl VolumePath {
    fn shown(&self) -> String {
        let path = go::quote(&self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    fn overlaps(&self, other: &VolumePath) -> bool {
        let (own, theirs) = (format!("{}/", self.path), format!("{}/", other.path));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (own.starts_with(&theirs) || theirs.starts_with(&own))
    }
}

pub(super) fn check(volumes: &At<'_, '_>, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        let mut say = |sort: &str, paths: Vec<VolumePath>| {
            let name = go::quote(volume.text_of("name"));
            for (own, other) in overlapping(&paths) {
                let (own, other) = (own.shown(), other.shown());
                warnings.push(format!("volume {name} ({sort}): overlapping paths: {own} with {other}"));
            }
        };
        let (map, secret) = (volume.field("configMap"), volume.field("secret"));
        say(&format!("ConfigMap {}", go::quote(map.text_of("name"))), items(&map, ""));
        say(&format!("Secret {}", go::quote(secret.text_of("secretName"))), items(&secret, ""));
        say("DownwardAPI", items(&volume.field("downwardAPI"), ""));
        let projected = volume.field("projected");
        let sources = projected.field("sources");
        for _ in sources.items().filter(|source| source.entries().next().is_none()) {
            let name = go::quote(volume.text_of("name"));
            warnings.push(format!("volume {name} (Projected) has no sources provided"));
        }
        let mut say = |paths: Vec<VolumePath>| {
            let name = go::quote(volume.text_of("name"));
            for (own, other) in overlapping(&paths) {
                let (own, other) = (own.shown(), other.shown());
                warnings.push(format!("volume {name} (Projected): overlapping paths: {own} with {other}"));
            }
        };
        say(sources.items().flat_map(|source| projection(&source)).collect());
    }
}

/// Each path with each before it that it overlaps.
fn overlapping(paths: &[VolumePath]) -> impl Iterator<Item = (&VolumePath, &VolumePath)> {
    let all = paths.iter().enumerate();
    all.flat_map(|(at, own)| {
        let before = paths[..at].iter().filter(move |other| own.overlaps(other));
        before.map(move |other| (own, other))
    })
}

fn items(of: &At<'_, '_>, source: &str) -> Vec<VolumePath> {
    let path = |item: At<'_, '_>| trimmed(item.text_of("path"), source);
    of.field("items").items().map(path).collect()
}

fn trimmed(path: &str, source: &str) -> VolumePath {
    VolumePath { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
}

/// What one source of a projected volume brings.
fn projection(source: &At<'_, '_>) -> Vec<VolumePath> {
    let named = |sort: &str, of: &At<'_, '_>| format!("{sort} {}", go::quote(of.text_of("name")));
    let (map, secret, pod) = (source.field("configMap"), source.field("secret"), source.field("downwardAPI"));
    let (token, bundle) = (source.field("serviceAccountToken"), source.field("clusterTrustBundle"));
    let certificate = source.field("podCertificate");
    if map.has("items") {
        items(&map, &named("ConfigMap", &map))
    } else if secret.has("items") {
        items(&secret, &named("Secret", &secret))
    } else if pod.has("items") {
        items(&pod, "DownwardAPI")
    } else if token.is_set() {
        vec![trimmed(token.text_of("path"), "ServiceAccountToken")]
    } else if bundle.is_set() {
        let name = if bundle.has("name") { "name" } else { "signerName" };
        let shown = format!("ClusterTrustBundle {}", go::quote(bundle.text_of(name)));
        vec![trimmed(bundle.text_of("path"), &shown)]
    } else {
        let fields = [
            ("certificateChainPath", "PodCertificate chain"),
            ("keyPath", "PodCertificate key"),
            ("credentialBundlePath", "PodCertificate credential bundle"),
        ];
        let brought = fields.into_iter().filter(|(field, _)| !certificate.text_of(field).is_empty());
        brought.map(|(field, shown)| trimmed(certificate.text_of(field), shown)).collect()
    }
}
