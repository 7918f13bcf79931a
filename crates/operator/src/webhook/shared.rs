//! Certificates in a Secret: the first replica makes them, all use them, and the first to notice renews them.

use super::{
    certificate::{self, CertificateAndKey, CertificateSet},
    serve::Error,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use std::collections::BTreeMap;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use world::World;

/// Several replicas may renew at once; one of them succeeds each time.
const ATTEMPTS: usize = 5;

const AUTHORITIES: &str = "ca.crt";
const AUTHORITY_KEYS: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The certificates in the Secret, made or renewed if necessary.
pub(super) async fn ensure(
    world: &World,
    client: &Client,
    namespace: &str,
    name: &str,
    names: &[String],
) -> Result<CertificateSet, Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    for _ in 0..ATTEMPTS {
        let found = secrets.get_opt(name).await.map_err(Error::Secret)?;
        let current = found.as_ref().and_then(read);
        let renewed =
            certificate::renewed(&|| certificate::new_key(world), world.wall(), current.as_ref(), names)?;
        let next = match (renewed, current) {
            (None, Some(current)) => return Ok(current),
            (Some(next), _) => next,
            (None, None) => continue,
        };
        let written = match found {
            // With its resourceVersion: a slower replica gets a conflict and reads again.
            Some(found) => {
                let secret = Secret { data: Some(data(&next)), ..found };
                secrets.replace(name, &PostParams::default(), &secret).await
            }
            None => secrets.create(&PostParams::default(), &new(name, &next)).await,
        };
        match written {
            Ok(_) => return Ok(next),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(Error::Secret(error)),
        }
    }
    Err(Error::Contended { secret: name.to_owned() })
}

fn new(name: &str, current: &CertificateSet) -> Secret {
    Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data(current)),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    }
}

fn data(current: &CertificateSet) -> BTreeMap<String, ByteString> {
    let keys: String = current.authorities.iter().map(|authority| authority.key.as_str()).collect();
    let texts = [
        (AUTHORITIES, current.bundle()),
        (AUTHORITY_KEYS, keys),
        (CERTIFICATE, current.server.certificate.clone()),
        (KEY, current.server.key.clone()),
    ];
    texts.into_iter().map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes()))).collect()
}

/// `None` if something is missing or invalid: then new certificates are made.
fn read(secret: &Secret) -> Option<CertificateSet> {
    let text = |name: &str| Some(std::str::from_utf8(&secret.data.as_ref()?.get(name)?.0).ok()?.to_owned());
    let certificates = blocks(&text(AUTHORITIES)?);
    let keys = blocks(&text(AUTHORITY_KEYS)?);
    if certificates.len() != keys.len() {
        return None;
    }
    let authorities = certificates.into_iter().zip(keys);
    let authorities: Vec<CertificateAndKey> =
        authorities.map(|(certificate, key)| CertificateAndKey { certificate, key }).collect();
    let server = CertificateAndKey { certificate: text(CERTIFICATE)?, key: text(KEY)? };
    let is_whole = |pair: &CertificateAndKey| {
        CertificateDer::from_pem_slice(pair.certificate.as_bytes()).is_ok()
            && PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).is_ok()
    };
    let current = CertificateSet { authorities, server };
    (current.authorities.iter().all(is_whole) && is_whole(&current.server)).then_some(current)
}

/// The blocks of a PEM text, each as it stands there.
fn blocks(pem: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    for line in pem.lines() {
        block.push_str(line);
        block.push('\n');
        if line.starts_with("-----END") {
            blocks.push(std::mem::take(&mut block));
        }
    }
    blocks
}
