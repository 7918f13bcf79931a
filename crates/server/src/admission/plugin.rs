//! The admission plugins of Kubernetes v1.36 by name: which have code here, and which of them run.

use AdmissionPlugin as P;

/// An admission plugin that has code here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionPlugin {
    AlwaysPullImages,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
    DefaultIngressClass,
    DefaultStorageClass,
    DefaultTolerationSeconds,
    DenyServiceExternalIps,
    LimitRanger,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    NamespaceLifecycle,
    NodeRestriction,
    OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize,
    PodResizeValidator,
    PodSecurity,
    PodTopologyLabels,
    Priority,
    ResourceQuota,
    RuntimeClass,
    ServiceAccount,
    StorageObjectInUseProtection,
    TaintNodesByCondition,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
}

/// What becomes of a plugin's name here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Runs unless it is disabled.
    Runs(AdmissionPlugin),
    /// Runs only if it is enabled.
    OnRequest(AdmissionPlugin),
    /// Does nothing in Kubernetes either, unless an alpha feature is on.
    Idle,
    /// Has no code here.
    Absent,
}

use Presence::{Absent, Idle, OnRequest, Runs};

// Kubernetes: all names that its flags accept. It enables NodeRestriction only on request; here it always
// runs, as in every cluster that is set up with care.
const PLUGINS: [(&str, Presence); 41] = [
    ("AlwaysAdmit", Idle),
    ("AlwaysDeny", Absent),
    ("AlwaysPullImages", OnRequest(P::AlwaysPullImages)),
    ("CertificateApproval", Runs(P::CertificateApproval)),
    ("CertificateSigning", Runs(P::CertificateSigning)),
    ("CertificateSubjectRestriction", Runs(P::CertificateSubjectRestriction)),
    ("ClusterTrustBundleAttest", Runs(P::ClusterTrustBundleAttest)),
    ("DefaultIngressClass", Runs(P::DefaultIngressClass)),
    ("DefaultStorageClass", Runs(P::DefaultStorageClass)),
    ("DefaultTolerationSeconds", Runs(P::DefaultTolerationSeconds)),
    ("DenyServiceExternalIPs", OnRequest(P::DenyServiceExternalIps)),
    ("EventRateLimit", Absent),
    ("ExtendedResourceToleration", Absent),
    ("ImagePolicyWebhook", Absent),
    ("JobValidation", Idle),
    ("LimitPodHardAntiAffinityTopology", Absent),
    ("LimitRanger", Runs(P::LimitRanger)),
    ("MutatingAdmissionPolicy", Runs(P::MutatingAdmissionPolicy)),
    ("MutatingAdmissionWebhook", Runs(P::MutatingAdmissionWebhook)),
    ("NamespaceAutoProvision", Absent),
    ("NamespaceExists", Absent),
    ("NamespaceLifecycle", Runs(P::NamespaceLifecycle)),
    ("NodeDeclaredFeatureValidator", Idle),
    ("NodeRestriction", Runs(P::NodeRestriction)),
    ("OwnerReferencesPermissionEnforcement", OnRequest(P::OwnerReferencesPermissionEnforcement)),
    ("PersistentVolumeClaimResize", Runs(P::PersistentVolumeClaimResize)),
    ("PodGroupProtection", Idle),
    ("PodGroupWorkloadExists", Idle),
    ("PodNodeSelector", Absent),
    ("PodResizeValidator", Runs(P::PodResizeValidator)),
    ("PodSecurity", Runs(P::PodSecurity)),
    ("PodTolerationRestriction", Absent),
    ("PodTopologyLabels", Runs(P::PodTopologyLabels)),
    ("Priority", Runs(P::Priority)),
    ("ResourceQuota", Runs(P::ResourceQuota)),
    ("RuntimeClass", Runs(P::RuntimeClass)),
    ("ServiceAccount", Runs(P::ServiceAccount)),
    ("StorageObjectInUseProtection", Runs(P::StorageObjectInUseProtection)),
    ("TaintNodesByCondition", Runs(P::TaintNodesByCondition)),
    ("ValidatingAdmissionPolicy", Runs(P::ValidatingAdmissionPolicy)),
    ("ValidatingAdmissionWebhook", Runs(P::ValidatingAdmissionWebhook)),
];

/// Why a plugin cannot be enabled or disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionPluginError {
    #[error("is unknown")]
    Unknown,
    #[error("has no code here, so that it cannot be enabled")]
    Absent,
}

/// The plugins that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionPlugins(u32);

impl Default for AdmissionPlugins {
    fn default() -> AdmissionPlugins {
        let runs = PLUGINS.iter().filter_map(|(_, presence)| match presence {
            Runs(plugin) => Some(*plugin),
            _ => None,
        });
        AdmissionPlugins(runs.fold(0, |set, plugin| set | bit(plugin)))
    }
}

impl AdmissionPlugins {
    pub fn has(self, plugin: AdmissionPlugin) -> bool {
        self.0 & bit(plugin) != 0
    }

    #[must_use]
    pub fn with(self, plugin: AdmissionPlugin) -> AdmissionPlugins {
        AdmissionPlugins(self.0 | bit(plugin))
    }

    #[must_use]
    pub fn without(self, plugin: AdmissionPlugin) -> AdmissionPlugins {
        AdmissionPlugins(self.0 & !bit(plugin))
    }

    /// Enables a plugin by its name.
    pub fn enable(&mut self, name: &str) -> Result<(), AdmissionPluginError> {
        match presence(name)? {
            Runs(plugin) | OnRequest(plugin) => *self = self.with(plugin),
            Idle => {}
            Absent => return Err(AdmissionPluginError::Absent),
        }
        Ok(())
    }

    /// Disables a plugin by its name.
    pub fn disable(&mut self, name: &str) -> Result<(), AdmissionPluginError> {
        if let Runs(plugin) | OnRequest(plugin) = presence(name)? {
            *self = self.without(plugin);
        }
        Ok(())
    }
}

fn presence(name: &str) -> Result<Presence, AdmissionPluginError> {
    let found = PLUGINS.iter().find(|(known, _)| *known == name);
    found.map(|(_, presence)| *presence).ok_or(AdmissionPluginError::Unknown)
}

fn bit(plugin: AdmissionPlugin) -> u32 {
    1 << plugin as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plugin_with_code_is_in_the_table_once() {
        assert!(PLUGINS.is_sorted_by_key(|(name, _)| *name));
        let mut seen = 0;
        for (name, presence) in PLUGINS {
            if let Runs(plugin) | OnRequest(plugin) = presence {
                assert_eq!(format!("{plugin:?}").to_lowercase(), name.to_lowercase());
                assert_eq!(seen & bit(plugin), 0, "{name} is there twice");
                seen |= bit(plugin);
            }
        }
        assert_eq!(seen, (1 << (P::ValidatingAdmissionWebhook as u32 + 1)) - 1, "a plugin has no name");
    }

    #[test]
    fn every_plugin_can_be_disabled_and_those_with_code_enabled() {
        for (name, presence) in PLUGINS {
            let mut plugins = AdmissionPlugins::default();
            assert_eq!(plugins.disable(name), Ok(()), "{name}");
            let enabled = plugins.enable(name);
            match presence {
                Runs(plugin) | OnRequest(plugin) => {
                    assert!(plugins.has(plugin), "{name}");
                    plugins.disable(name).unwrap();
                    assert!(!plugins.has(plugin), "{name}");
                }
                Idle => assert_eq!(enabled, Ok(()), "{name}"),
                Absent => assert_eq!(enabled, Err(AdmissionPluginError::Absent), "{name}"),
            }
        }
        assert_eq!(AdmissionPlugins::default().enable("Nonsense"), Err(AdmissionPluginError::Unknown));
        assert_eq!(AdmissionPlugins::default().disable("nonsense"), Err(AdmissionPluginError::Unknown));
    }
}
