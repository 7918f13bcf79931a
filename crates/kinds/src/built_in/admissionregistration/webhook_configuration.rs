//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration: who else is asked about a write.

pub(crate) mod validate;

use api::name::NameRule;

use super::{GROUP, warn_of_static_name};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, TableColumn, integer};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};
use validate::check;

const WEBHOOKS: &[&[&str]] = &[&["webhooks"]];

pub(crate) static VALIDATING_WEBHOOK_CONFIGURATION: BuiltIn =
    BuiltIn::new(GROUP, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
        .older_versions(&["v1beta1"])
        .strategy(Strategy::PLAIN.requires_resource_version().counts_generation_of(WEBHOOKS))
        .validation(
            Validation::new(check)
                .update(UpdateChecks::ONLY_AS_NEW)
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
        )
        .defaults(&[
            TypeDefaults::of("admissionregistration.v1.ValidatingWebhook").values(&[
                ("failurePolicy", DefaultValue::Text("Fail")),
                ("matchPolicy", DefaultValue::Text("Equivalent")),
                ("namespaceSelector", DefaultValue::EmptyObject),
                ("objectSelector", DefaultValue::EmptyObject),
                ("timeoutSeconds", DefaultValue::Number(10)),
            ]),
            TypeDefaults::of("admissionregistration.v1.RuleWithOperations")
                .values(&[("scope", DefaultValue::Text("*"))]),
            TypeDefaults::of("admissionregistration.v1.ServiceReference")
                .values(&[("port", DefaultValue::Number(443))]),
        ])
        .warnings(warn_of_static_name)
        .columns(COLUMNS);

pub(crate) static MUTATING_WEBHOOK_CONFIGURATION: BuiltIn =
    BuiltIn::new(GROUP, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .older_versions(&["v1beta1"])
        .strategy(Strategy::PLAIN.requires_resource_version().counts_generation_of(WEBHOOKS))
        .validation(
            Validation::new(check)
                .update(UpdateChecks::ONLY_AS_NEW)
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
        )
        .defaults(&[TypeDefaults::of("admissionregistration.v1.MutatingWebhook").values(&[
            ("failurePolicy", DefaultValue::Text("Fail")),
            ("matchPolicy", DefaultValue::Text("Equivalent")),
            ("namespaceSelector", DefaultValue::EmptyObject),
            ("objectSelector", DefaultValue::EmptyObject),
            ("timeoutSeconds", DefaultValue::Number(10)),
            ("reinvocationPolicy", DefaultValue::Text("Never")),
        ])])
        .warnings(warn_of_static_name)
        .columns(COLUMNS);

const COLUMNS: &[TableColumn] = &[NAME, integer("Webhooks", Cell::Count("/webhooks")), AGE];
