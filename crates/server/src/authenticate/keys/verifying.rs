//! Keys that verify service account tokens: public keys, certificates or private keys in PEM.

use super::{SigningKey, SigningKeyError};
use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use x509_parser::{
    pem::Pem,
    prelude::{FromDer, X509Certificate},
    public_key::PublicKey,
    x509::SubjectPublicKeyInfo,
};

/// Verifies tokens that its private key has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    algorithm: Algorithm,
    /// As the algorithm encodes it.
    public: Vec<u8>,
    spki: Vec<u8>,
    id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
}

/// The most keys of one file: each is tried for a token that names none.
const MAX_KEYS: usize = 32;
/// The length of an uncompressed point of P-256.
const POINT_BYTES: usize = 65;

impl VerifyingKey {
    /// All keys of a PEM text; other blocks are ignored.
    pub fn all_from_pem(text: &str) -> Result<Vec<VerifyingKey>, SigningKeyError> {
        let mut keys = Vec::new();
        for block in Pem::iter_from_buffer(text.as_bytes()).take(MAX_KEYS).flatten() {
            keys.extend(from_block(&block).transpose()?);
        }
        if keys.is_empty() { Err(SigningKeyError::NoPublicKey) } else { Ok(keys) }
    }

    /// A SubjectPublicKeyInfo in DER.
    pub(super) fn from_spki(spki: &[u8]) -> Result<VerifyingKey, SigningKeyError> {
        let (_, parsed) = SubjectPublicKeyInfo::from_der(spki).map_err(|_| SigningKeyError::Unfit)?;
        let public = parsed.subject_public_key.data.to_vec();
        let algorithm = match parsed.parsed() {
            Ok(PublicKey::RSA(key)) if key.key_size() >= 2048 => Algorithm::Rs256,
            Ok(PublicKey::EC(point)) if point.data().len() == POINT_BYTES => Algorithm::Es256,
            _ => return Err(SigningKeyError::Unfit),
        };
        // Kubernetes: derived from the public key, so that verifiers find the right one of several.
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, spki));
        Ok(VerifyingKey { algorithm, public, spki: spki.to_vec(), id })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The only algorithm that this key is used with.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
        }
    }

    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self.algorithm {
            Algorithm::Rs256 => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.public).verify(message, signature)
            }
            Algorithm::Es256 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.public).verify(message, signature)
            }
        };
        verified.is_ok()
    }

    /// The public key as a JSON Web Key, for other verifiers.
    pub(crate) fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let parsed = SubjectPublicKeyInfo::from_der(&self.spki).ok().and_then(|(_, key)| {
            Some(match key.parsed().ok()? {
                PublicKey::RSA(key) => {
                    let significant = |number: &[u8]| {
                        encode(&number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>())
                    };
                    json!({"kty": "RSA", "n": significant(key.modulus), "e": significant(key.exponent)})
                }
                PublicKey::EC(point) => {
                    let (x, y) = point.data().get(1..)?.split_at_checked(32)?;
                    json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)})
                }
                _ => return None,
            })
        });
        let mut jwk = parsed.unwrap_or_default();
        jwk["use"] = "sig".into();
        jwk["kid"] = self.id().into();
        jwk["alg"] = self.algorithm().into();
        jwk
    }
}

/// The key of a PEM block, if it is one.
fn from_block(block: &Pem) -> Option<Result<VerifyingKey, SigningKeyError>> {
    let der = block.contents.clone();
    let private = match block.label.as_str() {
        "PUBLIC KEY" => return Some(VerifyingKey::from_spki(&der)),
        "RSA PUBLIC KEY" => return Some(VerifyingKey::from_spki(&rsa_spki(&der))),
        "CERTIFICATE" => {
            let certificate = X509Certificate::from_der(&der).map_err(|_| SigningKeyError::Unfit);
            return Some(certificate.and_then(|(_, it)| VerifyingKey::from_spki(it.public_key().raw)));
        }
        "PRIVATE KEY" => PrivateKeyDer::Pkcs8(der.into()),
        "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(der.into()),
        "EC PRIVATE KEY" => PrivateKeyDer::Sec1(der.into()),
        _ => return None,
    };
    Some(SigningKey::from_der(&private).map(|key| key.verifying_key().clone()))
}

/// Wraps an RSAPublicKey (PKCS#1) into a SubjectPublicKeyInfo.
fn rsa_spki(der: &[u8]) -> Vec<u8> {
    /// SEQUENCE of the object identifier rsaEncryption and NULL.
    const ALGORITHM: [u8; 15] = [0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let bits = element(0x03, &[&[0], der].concat());
    element(0x30, &[&ALGORITHM[..], &bits].concat())
}

/// A DER element: tag, length, content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let bytes = content.len().to_be_bytes();
    let significant: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match significant[..] {
        [] => out.push(0),
        [only] if only < 0x80 => out.push(only),
        _ => {
            out.push(0x80 | u8::try_from(significant.len()).unwrap_or_default());
            out.extend(&significant);
        }
    }
    out.extend(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_each_form_of_pem() {
        let pem = |label: &str, der: &[u8]| Pem { label: label.to_owned(), contents: der.to_vec() };
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let (made, private) = SigningKey::make().unwrap();
        let texts =
            [key.public_key_pem(), certificate.pem(), "-----BEGIN X-----\nAAAA\n-----END X-----\n".into()];
        let found = VerifyingKey::all_from_pem(&format!("{}{private}", texts.concat())).unwrap();
        let ids: Vec<&str> = found.iter().map(VerifyingKey::id).collect();
        assert_eq!(ids, [found[0].id(), found[0].id(), made.id()]);
        assert_eq!(&found[2], made.verifying_key());
        assert!(matches!(VerifyingKey::all_from_pem("nothing"), Err(SigningKeyError::NoPublicKey)));
        let broken = from_block(&pem("PUBLIC KEY", b"nonsense"));
        assert!(matches!(broken, Some(Err(SigningKeyError::Unfit))));
    }

    #[test]
    fn an_rsa_key_in_pkcs1_equals_the_one_with_its_algorithm() {
        use aws_lc_rs::{
            encoding::AsDer,
            rsa::KeySize,
            signature::{KeyPair, RsaKeyPair},
        };
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let spki = pair.public_key().as_der().unwrap();
        let by_spki = VerifyingKey::from_spki(spki.as_ref()).unwrap();
        assert_eq!(rsa_spki(&by_spki.public), spki.as_ref());
        assert_eq!(by_spki.algorithm(), "RS256");
    }
}
