//! The CA of kubelets' serving certificates: the server trusts it for kubelets, and no client trusts it.

use super::{CA_RENEWED_YEARS, ca_params, is_for_key, issuer, years_left};
use crate::up::private_file;
use anyhow::{Context, Result, bail};
use rcgen::{Issuer, KeyPair};
use std::path::Path;
use world::Timestamp;

const CERTIFICATE: &str = "kubelet-ca.crt";
const KEY: &str = "kubelet-ca.key";
const NAME: &str = "setpoint-kubelet-ca";

/// A node chooses the names in its serving certificate. So that it cannot be taken for the API server with it, the
/// cluster's CA signs none of them. Certificate and key as PEM.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KubeletAuthority {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl KubeletAuthority {
    /// Reads it; creates it on the first start, and anew as the cluster's CA when it runs out.
    pub(super) fn load_or_make(now: Timestamp, directory: &Path) -> Result<KubeletAuthority> {
        let [certificate, key] = [CERTIFICATE, KEY].map(|name| directory.join(name));
        // The certificate is written last: if it exists, so does its key.
        if let Some(kept) = private_file::read(&certificate)? {
            let broken =
                || format!("{} holds no certificate: correct it, or remove it", certificate.display());
            let left = years_left(now, &kept).with_context(broken)?;
            let Some(kept_key) = private_file::read(&key)? else {
                bail!("{} is missing: restore it, or remove {CERTIFICATE}", key.display());
            };
            let broken =
                || format!("{} holds no key: correct it, or remove it and {CERTIFICATE}", key.display());
            if !is_for_key(&kept, &kept_key).with_context(broken)? {
                bail!("{} is not the key of {}", key.display(), certificate.display());
            }
            if left >= CA_RENEWED_YEARS {
                return Ok(KubeletAuthority { certificate: kept, key: kept_key });
            }
        }
        let made = KubeletAuthority::make(now)?;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        private_file::write(&key, &made.key)?;
        private_file::write(&certificate, &made.certificate)?;
        Ok(made)
    }

    /// A new one, not stored.
    pub(super) fn make(now: Timestamp) -> Result<KubeletAuthority> {
        let key = KeyPair::generate()?;
        let certificate = ca_params(now, NAME)?.self_signed(&key)?.pem();
        Ok(KubeletAuthority { certificate, key: key.serialize_pem() })
    }

    pub(super) fn issuer(&self) -> Result<Issuer<'static, KeyPair>> {
        issuer(&self.certificate, &self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn load(second: i64, directory: &Path) -> Result<KubeletAuthority> {
        KubeletAuthority::load_or_make(Timestamp::from_second(second)?, directory)
    }

    #[test]
    fn the_ca_of_kubelets_stays_until_it_runs_out() {
        let scratch = tempfile::tempdir().unwrap();
        let begun = 1_767_225_600;
        let years = |years: i64| begun + years * 365 * 24 * 3600;
        let first = load(begun, scratch.path()).unwrap();
        assert_eq!(load(years(14), scratch.path()).unwrap(), first);
        let next = load(years(16), scratch.path()).unwrap();
        assert_ne!(next, first);
        assert_eq!(load(years(17), scratch.path()).unwrap(), next);
    }

    #[test]
    fn a_damaged_ca_of_kubelets_is_told_and_not_replaced() {
        let begun = 1_767_225_600;
        type Spoil = fn(&Path);
        let cases: [(&str, Spoil); 4] = [
            ("kubelet-ca.crt holds no certificate: correct it, or remove it", |at| {
                fs::write(at.join(CERTIFICATE), "-----BEGIN NOTHING-----").unwrap();
            }),
            ("kubelet-ca.key is missing: restore it, or remove kubelet-ca.crt", |at| {
                fs::remove_file(at.join(KEY)).unwrap();
            }),
            ("kubelet-ca.key holds no key: correct it, or remove it and kubelet-ca.crt", |at| {
                fs::write(at.join(KEY), "x").unwrap();
            }),
            ("kubelet-ca.key is not the key of", |at| {
                fs::write(at.join(KEY), KeyPair::generate().unwrap().serialize_pem()).unwrap();
            }),
        ];
        for (expected, spoil) in cases {
            let scratch = tempfile::tempdir().unwrap();
            load(begun, scratch.path()).unwrap();
            spoil(scratch.path());
            let problem = format!("{:#}", load(begun, scratch.path()).unwrap_err());
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
