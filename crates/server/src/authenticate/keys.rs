//! The key that signs service account tokens: generated, or read from a file; RS256 or ES256.

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::AsDer,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
        RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
    },
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use x509_parser::{prelude::FromDer, public_key::PublicKey, x509::SubjectPublicKeyInfo};

/// Signs tokens and verifies its own signatures.
pub struct SigningKey {
    pair: Pair,
    /// The public key.
    spki: Vec<u8>,
    id: String,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    #[error("it holds no private key in PEM")]
    NotPem,
    #[error("it must be an RSA key of at least 2048 bits, or an ECDSA key on P-256")]
    Unfit,
    #[error("the system gives no random numbers")]
    NoChance,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "signing key {}", self.id)
    }
}

impl SigningKey {
    /// A new key and its PEM text, which is secret.
    // On P-256: generating an RSA key takes longer than the rest of a server's start.
    pub fn make() -> Result<(SigningKey, String), SigningKeyError> {
        let chance = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &chance);
        let der = made.map_err(|_| SigningKeyError::NoChance)?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref());
        let key = SigningKey::new(Pair::P256(key.map_err(|_| SigningKeyError::Unfit)?))?;
        Ok((key, pem(der.as_ref())))
    }

    /// A key in PEM: PKCS#8, PKCS#1 or SEC 1.
    pub fn from_pem(text: &str) -> Result<SigningKey, SigningKeyError> {
        let der = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| SigningKeyError::NotPem)?;
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = match &der {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok().map(Pair::Rsa),
            PrivateKeyDer::Sec1(der) => {
                EcdsaKeyPair::from_private_key_der(curve, der.secret_sec1_der()).ok().map(Pair::P256)
            }
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                let rsa = RsaKeyPair::from_pkcs8(der).map(Pair::Rsa);
                rsa.or_else(|_| EcdsaKeyPair::from_pkcs8(curve, der).map(Pair::P256)).ok()
            }
            _ => None,
        };
        SigningKey::new(pair.ok_or(SigningKeyError::Unfit)?)
    }

    fn new(pair: Pair) -> Result<SigningKey, SigningKeyError> {
        let spki = match &pair {
            Pair::Rsa(key) => key.public_key().as_der(),
            Pair::P256(key) => key.public_key().as_der(),
        };
        let spki = spki.map_err(|_| SigningKeyError::Unfit)?.as_ref().to_vec();
        // Kubernetes: derived from the public key, so that verifiers find the right one of several.
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &spki));
        Ok(SigningKey { pair, spki, id })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The only algorithm that this key is used with.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let chance = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &chance, message, &mut signature).ok()?;
                Some(signature)
            }
            Pair::P256(key) => key.sign(&chance, message).ok().map(|signature| signature.as_ref().to_vec()),
        }
    }

    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.pair {
            Pair::Rsa(key) => {
                let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key());
                key.verify(message, signature)
            }
            Pair::P256(key) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key());
                key.verify(message, signature)
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

fn pem(der: &[u8]) -> String {
    const LINE: usize = 64;
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(LINE).map(|line| format!("{}\n", String::from_utf8_lossy(line)));
    format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_read_from_its_pem_verifies_its_signatures() {
        let (key, text) = SigningKey::make().unwrap();
        let again = SigningKey::from_pem(&text).unwrap();
        assert_eq!((key.id(), key.algorithm()), (again.id(), "ES256"));
        let signature = key.sign(b"message").unwrap();
        assert!(again.has_signed(b"message", &signature));
        assert!(!again.has_signed(b"massage", &signature));
        let (other, _) = SigningKey::make().unwrap();
        assert!(!other.has_signed(b"message", &signature));
        assert_eq!(key.jwk()["x"].as_str().unwrap().len(), 43);
    }

    #[test]
    fn an_rsa_key_signs_with_rs256() {
        use aws_lc_rs::{encoding::Pkcs8V1Der, rsa::KeySize};
        let made = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = made.as_der().unwrap();
        let key = SigningKey::from_pem(&pem(der.as_ref())).unwrap();
        let signature = key.sign(b"message").unwrap();
        assert!(key.has_signed(b"message", &signature) && !key.has_signed(b"massage", &signature));
        let jwk = key.jwk();
        assert_eq!((&jwk["alg"], &jwk["kty"], &jwk["e"]), (&json!("RS256"), &json!("RSA"), &json!("AQAB")));
        assert_eq!(jwk["n"].as_str().unwrap().len(), 342, "256 bytes");
    }

    #[test]
    fn debug_output_hides_the_private_key() {
        let (key, text) = SigningKey::make().unwrap();
        let shown = format!("{key:?}");
        assert_eq!(shown, format!("signing key {}", key.id()));
        assert!(matches!(SigningKey::from_pem("nonsense"), Err(SigningKeyError::NotPem)));
        assert!(!text.contains(key.id()));
    }
}
