//! Writes the kubeconfig with the server's address and the administrator's credentials.

use super::{certificates::Certificates, private_file};
use anyhow::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::KeyPair;
use std::path::Path;

pub(crate) fn write(path: &Path, url: &str, certificates: &Certificates) -> Result<()> {
    private_file::write(path, &text(url, certificates))
}

/// That of the administrator.
pub(super) fn text(url: &str, certificates: &Certificates) -> String {
    let Certificates { ca, admin, admin_key, .. } = certificates;
    of_user(url, ca, "setpoint-admin", admin, admin_key)
}

/// With a certificate and its key, as PEM.
pub(super) fn of_user(url: &str, ca: &str, user: &str, certificate: &str, key: &str) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: setpoint
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: setpoint
  context:
    cluster: setpoint
    user: {user}
current-context: setpoint
",
        ca = encode(ca),
        certificate = encode(certificate),
        key = encode(&sec1(key).unwrap_or_else(|| key.to_owned())),
    )
}

/// A key on P-256 as `EC PRIVATE KEY`: Java's client takes a `PRIVATE KEY` for one of RSA. `None` for other keys.
pub(super) fn sec1(pkcs8: &str) -> Option<String> {
    /// INTEGER 1, and the head of the OCTET STRING with the private number.
    const BEFORE_PRIVATE: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];
    /// The curve: the object identifier prime256v1.
    const CURVE: [u8; 12] = [0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    /// The head of the BIT STRING with the public point.
    const BEFORE_PUBLIC: [u8; 5] = [0xa1, 0x44, 0x03, 0x42, 0x00];
    let pair = KeyPair::from_pem(pkcs8).ok()?;
    let der = pair.serialized_der();
    let at = der.windows(BEFORE_PRIVATE.len()).position(|window| window == BEFORE_PRIVATE)?;
    let private = der.get(at + BEFORE_PRIVATE.len()..)?.get(..32)?;
    let content = [&BEFORE_PRIVATE[..], private, &CURVE, &BEFORE_PUBLIC, pair.public_key_raw()].concat();
    let mut sec1 = vec![0x30, u8::try_from(content.len()).ok()?];
    sec1.extend(content);
    let lines = STANDARD.encode(sec1);
    let lines = lines.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned());
    let lines: Vec<String> = lines.collect();
    Some(format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_kubeconfig_is_the_same_key_with_its_curve() {
        let pair = KeyPair::generate().unwrap();
        let pem = sec1(&pair.serialize_pem()).unwrap();
        assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{pem}");
        let again = KeyPair::from_pem(&pem).unwrap();
        assert_eq!(again.public_key_raw(), pair.public_key_raw());
    }
}
