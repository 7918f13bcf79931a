//! `--controllers`: parses the list of controllers to run.

use super::control_loops::SCHEDULER;
use std::str::FromStr;

/// One word of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// An empty word. Kubernetes: a list of nothing else runs no controllers.
    None,
    /// `*`: all but those that must be named explicitly.
    All,
    With(&'static str),
    /// `-name`
    Without(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unknown(String);

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Kubernetes: the text of kube-controller-manager.
        write!(f, "{:?} is not in the list of known controllers", self.0)
    }
}

impl std::error::Error for Unknown {}

impl FromStr for Choice {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Choice, Unknown> {
        match text {
            "" => return Ok(Choice::None),
            "*" => return Ok(Choice::All),
            _ => {}
        }
        let name = text.strip_prefix('-').unwrap_or(text);
        let known = KNOWN.iter().find(|known| **known == name).ok_or_else(|| Unknown(name.to_owned()))?;
        Ok(if name == text { Choice::With(known) } else { Choice::Without(known) })
    }
}

/// The controllers to run. A name has precedence over the star, and the first entry for a controller decides.
pub(super) fn chosen(choices: &[Choice]) -> impl Iterator<Item = &'static str> {
    let is_chosen = |name: &&'static str| {
        let said = choices.iter().find_map(|choice| match choice {
            Choice::With(it) if it == name => Some(true),
            Choice::Without(it) if it == name => Some(false),
            _ => None,
        });
        said.unwrap_or_else(|| choices.contains(&Choice::All) && !ON_REQUEST.contains(name))
    };
    KNOWN.into_iter().filter(is_chosen)
}

// Kubernetes: these run only if named.
const ON_REQUEST: [&str; 3] =
    ["bootstrap-signer-controller", "selinux-warning-controller", "token-cleaner-controller"];

// Kubernetes: the names of its controllers; and the scheduler, which is a program of its own there.
const KNOWN: [&str; 50] = [
    "bootstrap-signer-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    SCHEDULER,
    "legacy-serviceaccount-token-cleaner-controller",
    "namespace-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-expander-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "podcertificaterequest-cleaner-controller",
    "podgroup-protection-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourceclaim-controller",
    "resourcepoolstatusrequest-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "selinux-warning-controller",
    "service-cidr-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
    "taint-eviction-controller",
    "token-cleaner-controller",
    "ttl-after-finished-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_controllers_run() {
        for (list, name, expected) in [
            ("*", "deployment-controller", true),
            ("*", "token-cleaner-controller", false),
            ("*,token-cleaner-controller", "token-cleaner-controller", true),
            ("*,-deployment-controller", "deployment-controller", false),
            ("-deployment-controller,*", "deployment-controller", false),
            ("-deployment-controller,*", "job-controller", true),
            ("job-controller", "job-controller", true),
            ("job-controller", "deployment-controller", false),
            ("-job-controller", "deployment-controller", false),
            ("", "deployment-controller", false),
            ("job-controller,-job-controller", "job-controller", true),
        ] {
            let choices: Vec<Choice> = list.split(',').map(|word| word.parse().unwrap()).collect();
            assert_eq!(chosen(&choices).any(|it| it == name), expected, "{list} {name}");
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        for (word, unknown) in [("-red", "red"), ("red", "red"), ("**", "**"), ("-*", "*")] {
            let problem = word.parse::<Choice>().unwrap_err().to_string();
            assert_eq!(problem, format!("{unknown:?} is not in the list of known controllers"));
        }
    }
}
