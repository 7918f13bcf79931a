//! The key that signs service account tokens: given, stored at the first start, or new each time.

use super::{UpOptions, kubeconfig, private_file};
use anyhow::{Context, Result};
use server::SigningKey;
use std::{fs, path::Path};

/// The key by the options. Every replica on one etcd cluster needs the same.
pub(super) fn open(options: &UpOptions) -> Result<Option<SigningKey>> {
    match &options.service_account_signing_key_file {
        Some(path) => {
            let key = read(path).with_context(|| {
                format!("--service-account-signing-key-file {}: use a private key in PEM", path.display())
            });
            key.map(Some)
        }
        None if options.ephemeral => Ok(None),
        None => kept(&options.data_dir.join("pki/sa.key")).map(Some),
    }
}

fn kept(path: &Path) -> Result<SigningKey> {
    if let Some(text) = private_file::read(path)? {
        return SigningKey::from_pem(&text).with_context(|| {
            let path = path.display();
            format!("cannot use {path}: restore it, or remove it, which ends the tokens of service accounts")
        });
    }
    let (key, text) = SigningKey::make()?;
    // Kubernetes: kube-apiserver reads the public half of a private key only in this form.
    private_file::write(path, &kubeconfig::sec1(&text).unwrap_or(text))?;
    Ok(key)
}

fn read(path: &Path) -> Result<SigningKey> {
    Ok(SigningKey::from_pem(&fs::read_to_string(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_key_is_one_that_kube_apiserver_reads() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("sa.key");
        kept(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{text}");
        kept(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
