//! HorizontalPodAutoscaler: how many replicas, by what is measured.

mod columns;
mod convert;
mod defaults;
mod metric;
mod validate;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::convert::VersionConversion;
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static HORIZONTAL_POD_AUTOSCALER: BuiltIn =
    BuiltIn::new(GROUP, "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .strategy(Strategy::PLAIN.status())
        .validation(
            Validation::new(validate::check)
                .update(UpdateChecks::CHANGE.compare(validate::check_change))
                .subresources(&[("status", validate::check_status)]),
        )
        .defaults(&[
            TypeDefaults::of("autoscaling.v1.HorizontalPodAutoscaler")
                .rule(defaults::default_v1)
                .values(&[("spec.minReplicas", DefaultValue::Number(1))]),
            TypeDefaults::of("autoscaling.v2.HorizontalPodAutoscaler").values(&[
                ("spec.minReplicas", DefaultValue::Number(1)),
                ("spec.metrics", DefaultValue::Computed(defaults::default_metrics)),
            ]),
            TypeDefaults::of("autoscaling.v2.HorizontalPodAutoscalerBehavior")
                .rule(defaults::default_behavior),
        ])
        .columns(columns::COLUMNS)
        .conversions(&[
            VersionConversion { from: (GROUP, "v1"), to: (GROUP, "v2"), convert: convert::to_v2 },
            VersionConversion { from: (GROUP, "v2"), to: (GROUP, "v1"), convert: convert::to_v1 },
        ])
        .internal_version("v2")
        .annotations_for_fields(&convert::TRAVELLING);
