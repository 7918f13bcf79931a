//! The key that signs service account tokens: generated, or read from a file; RS256 or ES256.

mod verifying;

pub use verifying::VerifyingKey;

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, pem::PemObject};

/// Signs tokens.
pub struct SigningKey {
    pair: Pair,
    public: VerifyingKey,
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
    // Kubernetes: its text.
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    #[error("it must be an RSA key of at least 2048 bits, or an ECDSA key on P-256")]
    Unfit,
    #[error("the system gives no random numbers")]
    NoChance,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "signing key {}", self.id())
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
        SigningKey::from_der(&der)
    }

    fn from_der(der: &PrivateKeyDer<'_>) -> Result<SigningKey, SigningKeyError> {
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = match der {
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
        let spki = spki.map_err(|_| SigningKeyError::Unfit)?;
        Ok(SigningKey { pair, public: VerifyingKey::from_spki(spki.as_ref())? })
    }

    pub(crate) fn id(&self) -> &str {
        self.public.id()
    }

    /// The only algorithm that this key is used with.
    pub(crate) fn algorithm(&self) -> &'static str {
        self.public.algorithm()
    }

    /// Verifies what this key signs.
    pub(crate) fn verifying_key(&self) -> &VerifyingKey {
        &self.public
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
    use serde_json::json;

    #[test]
    fn a_key_read_from_its_pem_verifies_its_signatures() {
        let (key, text) = SigningKey::make().unwrap();
        let again = SigningKey::from_pem(&text).unwrap();
        assert_eq!((key.id(), key.algorithm()), (again.id(), "ES256"));
        let signature = key.sign(b"message").unwrap();
        assert!(again.verifying_key().has_signed(b"message", &signature));
        assert!(!again.verifying_key().has_signed(b"massage", &signature));
        let (other, _) = SigningKey::make().unwrap();
        assert!(!other.verifying_key().has_signed(b"message", &signature));
        assert_eq!(key.verifying_key().jwk()["x"].as_str().unwrap().len(), 43);
    }

    #[test]
    fn an_rsa_key_signs_with_rs256() {
        use aws_lc_rs::{encoding::Pkcs8V1Der, rsa::KeySize};
        let made = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = made.as_der().unwrap();
        let key = SigningKey::from_pem(&pem(der.as_ref())).unwrap();
        let signature = key.sign(b"message").unwrap();
        let public = key.verifying_key();
        assert!(public.has_signed(b"message", &signature) && !public.has_signed(b"massage", &signature));
        let jwk = public.jwk();
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
