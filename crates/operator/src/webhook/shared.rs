//! Certificates in a Secret: the first replica makes them, all use them, whoever looks first renews them.

use super::{
    certificate::{self, Kept, Pair},
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

/// Several replicas may want to renew at once; one of them succeeds each time.
const ATTEMPTS: usize = 5;

const AUTHORITIES: &str = "ca.crt";
const AUTHORITY_KEYS: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// What the Secret holds, made or renewed if it is time.
pub(super) async fn look(
    world: &World,
    client: &Client,
    namespace: &str,
    name: &str,
    names: &[String],
) -> Result<Kept, Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    for _ in 0..ATTEMPTS {
        let found = secrets.get_opt(name).await.map_err(Error::Secret)?;
        let kept = found.as_ref().and_then(read);
        let renewed = certificate::renewed(world.wall(), kept.as_ref(), names)?;
        let next = match (renewed, kept) {
            (None, Some(kept)) => return Ok(kept),
            (Some(next), _) => next,
            (None, None) => continue,
        };
        let written = match found {
            // The resourceVersion goes along: who was slower reads again.
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

fn new(name: &str, kept: &Kept) -> Secret {
    Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data(kept)),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    }
}

fn data(kept: &Kept) -> BTreeMap<String, ByteString> {
    let keys: String = kept.authorities.iter().map(|authority| authority.key.as_str()).collect();
    let texts = [
        (AUTHORITIES, kept.bundle()),
        (AUTHORITY_KEYS, keys),
        (CERTIFICATE, kept.server.certificate.clone()),
        (KEY, kept.server.key.clone()),
    ];
    texts.into_iter().map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes()))).collect()
}

/// `None` where something is missing or is not what it should be: then it is made anew.
fn read(secret: &Secret) -> Option<Kept> {
    let text = |name: &str| Some(std::str::from_utf8(&secret.data.as_ref()?.get(name)?.0).ok()?.to_owned());
    let certificates = blocks(&text(AUTHORITIES)?);
    let keys = blocks(&text(AUTHORITY_KEYS)?);
    if certificates.len() != keys.len() {
        return None;
    }
    let authorities = certificates.into_iter().zip(keys);
    let authorities: Vec<Pair> = authorities.map(|(certificate, key)| Pair { certificate, key }).collect();
    let server = Pair { certificate: text(CERTIFICATE)?, key: text(KEY)? };
    let is_whole = |pair: &Pair| {
        CertificateDer::from_pem_slice(pair.certificate.as_bytes()).is_ok()
            && PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).is_ok()
    };
    let kept = Kept { authorities, server };
    (kept.authorities.iter().all(is_whole) && is_whole(&kept.server)).then_some(kept)
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
