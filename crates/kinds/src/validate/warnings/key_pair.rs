//! Whether what a secret holds as certificate and key looks like that at all.

use super::super::at::At;
use super::super::custom_resource_definition::ca_bundle;
use super::super::secret::decode_base64;

/// Kubernetes: the words of Go's TLS library. What is inside the blocks nobody looks at here.
pub(super) fn check(secret: &At<'_, '_>, warnings: &mut Vec<String>) {
    if secret.text_of("type") == "kubernetes.io/tls" {
        let data = secret.field("data");
        let blocks = |encoded: &str| ca_bundle::labels(&decode_base64(encoded));
        let certificate = certificate_problem(&blocks(data.text_of("tls.crt")));
        warnings.extend(certificate.or_else(|| key_problem(&blocks(data.text_of("tls.key")))));
    }
}

fn certificate_problem(found: &[String]) -> Option<String> {
    match found {
        [] => Some("tls: failed to find any PEM data in certificate input".to_owned()),
        found if found.iter().any(|block| block == "CERTIFICATE") => None,
        [key] if key.ends_with("PRIVATE KEY") => Some(
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs \
             may have been switched"
                .to_owned(),
        ),
        others => Some(format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: [{}]",
            others.join(" ")
        )),
    }
}

fn key_problem(found: &[String]) -> Option<String> {
    match found {
        [] => Some("tls: failed to find any PEM data in key input".to_owned()),
        found if found.iter().any(|block| block.ends_with("PRIVATE KEY")) => None,
        [only] if only == "CERTIFICATE" => {
            Some("tls: found a certificate rather than a key in the PEM for the private key".to_owned())
        }
        others => Some(format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
             blocks of the following types: [{}]",
            others.join(" ")
        )),
    }
}
