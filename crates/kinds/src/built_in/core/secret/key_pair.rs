//! Whether what a secret holds as certificate and key looks like that at all.

use serde_json::Value;

use super::decode_base64;
use crate::built_in::apiextensions::custom_resource_definition::validate::ca_bundle;
use crate::validate::at::At;

/// Kubernetes: the words of Go's TLS library. The content of the PEM blocks is not looked at.
pub(super) fn warn(secret: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
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
