//! Webhooks and policies that are configured by objects, indexed by resource and kept current.

use super::{policy::Policies, webhook::Configurations};
use crate::live::Live;

// Kubernetes: their keys in the store. Policies and their bindings share a prefix and are followed
// together.
const MUTATING_WEBHOOKS: &str = "/registry/mutatingwebhookconfigurations/";
const VALIDATING_WEBHOOKS: &str = "/registry/validatingwebhookconfigurations/";
const MUTATING_POLICIES: &str = "/registry/mutatingadmissionpolic";
const VALIDATING_POLICIES: &str = "/registry/validatingadmissionpolic";

#[derive(Debug)]
pub(crate) struct Configured {
    pub(super) mutating_webhooks: Live<Configurations>,
    pub(super) validating_webhooks: Live<Configurations>,
    pub(super) mutating_policies: Live<Policies>,
    pub(super) validating_policies: Live<Policies>,
}

impl Default for Configured {
    fn default() -> Configured {
        Configured {
            mutating_webhooks: Live::new(MUTATING_WEBHOOKS, Configurations::default()),
            validating_webhooks: Live::new(VALIDATING_WEBHOOKS, Configurations::default()),
            mutating_policies: Live::new(MUTATING_POLICIES, Policies::default()),
            validating_policies: Live::new(VALIDATING_POLICIES, Policies::default()),
        }
    }
}
