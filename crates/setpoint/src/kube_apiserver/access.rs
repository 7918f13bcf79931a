//! Who users are and what they may do, by the flags: tokens, keys, audiences, authorization, admission.

use super::flags::{Flags, read};
use anyhow::{Context, Result, bail};
use server::{
    AddressChoice, AdmissionPluginError, AdmissionPlugins, AuthorizationMode, KubeletSockets, KubeletTls,
    Kubelets, SigningKey, Token, TokenFile, VerifyingKey,
};
use std::{collections::BTreeSet, path::Path, sync::Arc};

const SIGNING_KEY: &str = "service-account-signing-key-file";
const VERIFYING_KEYS: &str = "service-account-key-file";

pub(super) fn tokens(flags: &Flags) -> Result<Vec<Token>> {
    match flags.last("token-auth-file") {
        Some(path) => TokenFile::read(Path::new(path)).with_context(|| {
            format!("--token-auth-file {path}: write a line `token,user,uid,\"group1,group2\"` for each user")
        }),
        None => Ok(Vec::new()),
    }
}

/// The key that signs service account tokens, if one is given.
pub(super) fn signing_key(flags: &Flags) -> Result<Option<SigningKey>> {
    let Some(path) = flags.last(SIGNING_KEY) else { return Ok(None) };
    let key = SigningKey::from_pem(&read(path, SIGNING_KEY)?);
    Ok(Some(key.with_context(|| format!("--{SIGNING_KEY} {path}: name a private key in PEM"))?))
}

/// The keys whose service account tokens are accepted, too.
pub(super) fn verifying_keys(flags: &Flags) -> Result<Vec<VerifyingKey>> {
    let mut keys = Vec::new();
    for path in flags.all(VERIFYING_KEYS) {
        let found = VerifyingKey::all_from_pem(&read(path, VERIFYING_KEYS)?);
        keys.extend(
            found
                .with_context(|| format!("--{VERIFYING_KEYS} {path}: name public or private keys in PEM"))?,
        );
    }
    Ok(keys)
}

/// The issuers: the first issues, all are accepted.
pub(super) fn issuers(flags: &Flags) -> Result<Vec<String>> {
    let mut issuers: Vec<String> = Vec::new();
    for issuer in flags.all("service-account-issuer") {
        if issuers.iter().any(|other| other == issuer) {
            bail!("service-account-issuer {issuer:?} is already specified");
        }
        issuers.push(issuer.to_owned());
    }
    Ok(issuers)
}

/// The modes of authorization. Unlike kube-apiserver, which then allows everything, Node and RBAC if none is named.
pub(super) fn authorization(flags: &Flags) -> Result<Vec<AuthorizationMode>> {
    let mut modes = Vec::new();
    for name in flags.all("authorization-mode") {
        let mode: AuthorizationMode = name.parse()?;
        if modes.contains(&mode) {
            bail!("authorization-mode {name:?} has mode specified more than once");
        }
        modes.push(mode);
    }
    if modes.is_empty() {
        if flags.is_given("authorization-mode") {
            bail!("at least one authorization-mode must be passed");
        }
        modes = vec![AuthorizationMode::Node, AuthorizationMode::Rbac];
    }
    Ok(modes)
}

/// Whether requests without credentials are answered.
pub(super) fn allows_anonymous(flags: &Flags, modes: &[AuthorizationMode]) -> Result<bool> {
    let is_allowed = flags.switch("anonymous-auth", true)?;
    // Kubernetes: otherwise anybody could do anything.
    if is_allowed && modes.contains(&AuthorizationMode::AlwaysAllow) {
        tracing::warn!(
            "--anonymous-auth is off: it is not allowed with the mode AlwaysAllow of --authorization-mode"
        );
        return Ok(false);
    }
    Ok(is_allowed)
}

/// The admission plugins that run.
pub(super) fn admission_plugins(flags: &Flags) -> Result<AdmissionPlugins> {
    let (enabled, disabled) = ("enable-admission-plugins", "disable-admission-plugins");
    let both: BTreeSet<&str> = flags.all(enabled).collect();
    let both: Vec<&str> = flags.all(disabled).filter(|name| both.contains(name)).collect();
    if !both.is_empty() {
        // Kubernetes: its text.
        bail!("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", both.join(" "));
    }
    let mut plugins = AdmissionPlugins::default();
    for name in flags.all(enabled) {
        plugins.enable(name).map_err(|error| problem(enabled, name, error))?;
    }
    for name in flags.all(disabled) {
        plugins.disable(name).map_err(|error| problem(disabled, name, error))?;
    }
    Ok(plugins)
}

// Kubernetes: the text for a plugin that is unknown.
fn problem(flag: &str, name: &str, error: AdmissionPluginError) -> anyhow::Error {
    anyhow::anyhow!("{flag} plugin {name:?} {error}")
}

/// How kubelets are reached. Without a CA to verify them, none is asked.
pub(super) fn kubelets(flags: &Flags) -> Result<Option<Arc<dyn Kubelets>>> {
    let [authority, certificate, key] =
        ["kubelet-certificate-authority", "kubelet-client-certificate", "kubelet-client-key"]
            .map(|name| flags.files(name));
    let (authority, certificate, key) = (authority?, certificate?, key?);
    if certificate.is_empty() {
        return Ok(None);
    }
    if authority.is_empty() {
        tracing::warn!("no node is asked without --kubelet-certificate-authority");
        return Ok(None);
    }
    let tls = KubeletTls { certificate: &certificate, key: &key, authority: &authority };
    Ok(Some(Arc::new(KubeletSockets::new(tls).context("--kubelet-client-certificate")?)))
}

/// Which address of a Node is used: the types of the flag, or Kubernetes' order.
pub(super) fn kubelet_addresses(flags: &Flags) -> AddressChoice {
    let types: Vec<String> = flags.all("kubelet-preferred-address-types").map(str::to_owned).collect();
    if types.is_empty() { AddressChoice::default() } else { AddressChoice::Types(types) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use server::AdmissionPlugin;

    fn flags(arguments: &[&str]) -> Flags {
        Flags::parse(arguments.iter().map(|argument| (*argument).to_owned())).unwrap()
    }

    #[test]
    fn modes_of_authorization_are_those_of_the_flag() {
        use AuthorizationMode::{AlwaysAllow, AlwaysDeny, Node, Rbac};
        for (argument, expected) in [
            ("--authorization-mode=RBAC", Ok(vec![Rbac])),
            ("--authorization-mode=Node,RBAC", Ok(vec![Node, Rbac])),
            ("--authorization-mode=AlwaysAllow", Ok(vec![AlwaysAllow])),
            ("--authorization-mode=AlwaysDeny", Ok(vec![AlwaysDeny])),
            ("--secure-port=1", Ok(vec![Node, Rbac])),
            ("--authorization-mode=", Err("at least one authorization-mode must be passed")),
            ("--authorization-mode=Magic", Err("authorization-mode \"Magic\" is not a valid mode")),
            (
                "--authorization-mode=RBAC,RBAC",
                Err("authorization-mode \"RBAC\" has mode specified more than once"),
            ),
            (
                "--authorization-mode=Webhook",
                Err(
                    "authorization-mode \"Webhook\" has no code here; use Node, RBAC, AlwaysAllow or AlwaysDeny",
                ),
            ),
        ] {
            let found = authorization(&flags(&[argument])).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{argument}");
        }
    }

    #[test]
    fn anonymous_requests_are_off_where_everything_is_allowed() {
        use AuthorizationMode::{AlwaysAllow, Rbac};
        for (arguments, mode, expected) in [
            (&[][..], Rbac, true),
            (&["--anonymous-auth=false"], Rbac, false),
            (&["--anonymous-auth"], AlwaysAllow, false),
        ] {
            assert_eq!(allows_anonymous(&flags(arguments), &[mode]).unwrap(), expected, "{arguments:?}");
        }
    }

    #[test]
    fn kubelets_are_reached_at_the_address_types_of_the_flag() {
        assert_eq!(kubelet_addresses(&flags(&[])), AddressChoice::NamesFirst);
        let types = ["InternalIP", "Hostname"].map(str::to_owned).to_vec();
        let flags = flags(&["--kubelet-preferred-address-types=InternalIP,Hostname"]);
        assert_eq!(kubelet_addresses(&flags), AddressChoice::Types(types));
    }

    #[test]
    fn admission_plugins_are_those_of_the_flags() {
        let plugins =
            |arguments: &[&str]| admission_plugins(&flags(arguments)).map_err(|error| error.to_string());
        let chosen = plugins(&[
            "--disable-admission-plugins=ServiceAccount,PodSecurity",
            "--enable-admission-plugins=NodeRestriction",
            "--enable-admission-plugins=AlwaysPullImages",
        ]);
        let chosen = chosen.unwrap();
        assert!(!chosen.has(AdmissionPlugin::ServiceAccount) && !chosen.has(AdmissionPlugin::PodSecurity));
        assert!(chosen.has(AdmissionPlugin::AlwaysPullImages) && chosen.has(AdmissionPlugin::LimitRanger));
        for (arguments, expected) in [
            (
                &["--enable-admission-plugins=Magic"][..],
                "enable-admission-plugins plugin \"Magic\" is unknown",
            ),
            (&["--disable-admission-plugins=Magic"], "disable-admission-plugins plugin \"Magic\" is unknown"),
            (
                &["--enable-admission-plugins=PodSecurity", "--disable-admission-plugins=PodSecurity"],
                "[PodSecurity] in enable-admission-plugins and disable-admission-plugins overlapped",
            ),
            (
                &["--enable-admission-plugins=PodNodeSelector"],
                "enable-admission-plugins plugin \"PodNodeSelector\" has no code here, so that it cannot be enabled",
            ),
        ] {
            assert_eq!(plugins(arguments).unwrap_err(), expected);
        }
    }
}
