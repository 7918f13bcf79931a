//! PriorityLevelConfiguration: how many requests of a level run at once, and which wait.

use api::field::{Error, ErrorList};
use serde_json::Value;

use super::{GROUP, check_conditions, check_status, fixed_spec};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, number};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::builder::SPEC;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::At;
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};

const MAX_QUEUES: i64 = 10_000_000;
/// Kubernetes: more would make some queues likelier than others.
const MAX_HASH_BITS: f64 = 60.0;

pub(crate) static PRIORITY_LEVEL_CONFIGURATION: BuiltIn =
    BuiltIn::new(GROUP, "PriorityLevelConfiguration", "prioritylevelconfigurations")
        .older_versions(&["v1beta1", "v1beta2", "v1beta3"])
        .strategy(
            Strategy::PLAIN.counts_generation_of(SPEC).status().status_metadata(StatusMetadata::Nothing),
        )
        .validation(
            Validation::new(check)
                .update(UpdateChecks::ONLY_AS_NEW)
                .subresources(&[("status", check_status)])
                .without_metadata_of_status(),
        )
        .defaults(&[
            TypeDefaults::of("flowcontrol.v1.ExemptPriorityLevelConfiguration").values(&[
                ("nominalConcurrencyShares", DefaultValue::Number(0)),
                ("lendablePercent", DefaultValue::Number(0)),
            ]),
            TypeDefaults::of("flowcontrol.v1.LimitedPriorityLevelConfiguration").values(&[
                ("nominalConcurrencyShares", DefaultValue::Number(30)),
                ("lendablePercent", DefaultValue::Number(0)),
            ]),
            TypeDefaults::of("flowcontrol.v1.QueuingConfiguration").values(&[
                ("handSize", DefaultValue::Number(8)),
                ("queues", DefaultValue::Number(64)),
                ("queueLengthLimit", DefaultValue::Number(50)),
            ]),
        ])
        .columns(&[
            NAME,
            string("Type", Cell::Text("/spec/type")),
            string(
                "NominalConcurrencyShares",
                Cell::Computed(|it| number_of(it.at("/spec/limited"), "nominalConcurrencyShares")),
            ),
            string("Queues", Cell::Computed(|it| number_of(queuing(it), "queues"))),
            string("HandSize", Cell::Computed(|it| number_of(queuing(it), "handSize"))),
            string("QueueLengthLimit", Cell::Computed(|it| number_of(queuing(it), "queueLengthLimit"))),
            AGE,
        ]);

fn check(level: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = level.field("spec");
    let (sort, limited, exempt) = (spec.field("type"), spec.field("limited"), spec.field("exempt"));
    if (api::object::name(level.value()) == "exempt") != (sort.text() == "Exempt") {
        sort.invalid_text(errors, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match sort.text() {
        "Exempt" => {
            if limited.is_set() {
                limited.forbidden(errors, "must be nil if the type is not Limited");
            }
            check_shares(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                exempt.forbidden(errors, "must be nil if the type is Limited");
            }
            if limited.is_set() {
                check_shares(&limited, errors);
                check_response(&limited.field("limitResponse"), errors);
            } else {
                limited.required(errors, "must not be empty when type is Limited");
            }
        }
        _ => sort.required_one_of(errors, &["Exempt", "Limited"]),
    }
    check_fixed(level, errors);
    check_conditions(level, errors);
}

fn check_fixed(level: &At<'_, '_>, errors: &mut ErrorList) {
    let (name, spec) = (api::object::name(level.value()), level.field("spec"));
    let Some(mut fixed) = fixed_spec("PriorityLevelConfiguration", name) else { return };
    let mut given = spec.value().clone();
    let except = if name == "exempt" { " except the 'spec.exempt' field" } else { "" };
    if name == "exempt" {
        for spec in [&mut fixed, &mut given] {
            spec.as_object_mut().map(|spec| spec.remove("exempt"));
        }
    }
    if given != fixed {
        let shown = internal::shown("io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", spec.value());
        let problem = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(Error::invalid(spec.path(), shown, problem));
    }
}

fn check_shares(at: &At<'_, '_>, errors: &mut ErrorList) {
    let shares = at.field("nominalConcurrencyShares");
    if shares.int() < 0 {
        shares.invalid_int(errors, "must be a non-negative integer");
    }
    let lendable = at.field("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        lendable.invalid_int(errors, "must be between 0 and 100, inclusive");
    }
    let borrowing = at.field("borrowingLimitPercent");
    if borrowing.int() < 0 {
        borrowing.invalid_int(errors, "if specified, must be a non-negative integer");
    }
}

fn check_response(response: &At<'_, '_>, errors: &mut ErrorList) {
    let (sort, queuing) = (response.field("type"), response.field("queuing"));
    match sort.text() {
        "Reject" if queuing.is_set() => {
            queuing.forbidden(errors, "must be nil if limited.limitResponse.type is not Limited");
        }
        "Queue" if !queuing.is_set() => {
            queuing.required(errors, "must not be empty if limited.limitResponse.type is Limited");
        }
        "Queue" => check_queues(&queuing, errors),
        _ => sort.required_one_of(errors, &["Queue", "Reject"]),
    }
}

fn check_queues(queuing: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["queueLengthLimit", "queues", "handSize"] {
        if queuing.int_of(field) <= 0 {
            queuing.field(field).invalid_int(errors, "must be positive");
        }
    }
    let (queues, hand) = (queuing.field("queues"), queuing.field("handSize"));
    if queues.int() > MAX_QUEUES {
        queues.invalid_int(errors, format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand.int() > 0 && hand.int() > queues.int() {
        hand.invalid_int(errors, format!("should not be greater than queues ({})", queues.int()));
    } else if hand.int() > 0 && entropy(queues.int(), hand.int()) > MAX_HASH_BITS {
        let (deck, hand_size) = (queues.int(), hand.int());
        let problem = format!(
            "required entropy bits of deckSize {deck} and handSize {hand_size} should not be greater than {MAX_HASH_BITS}"
        );
        hand.invalid_int(errors, problem);
    }
}

/// How many bits of a hash it takes to deal a hand.
#[expect(clippy::cast_precision_loss, reason = "numbers of queues and hands are far below 2^52")]
fn entropy(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

fn queuing<'a>(level: &Row<'a>) -> &'a Value {
    level.at("/spec/limited/limitResponse/queuing")
}

fn number_of(part: &Value, member: &str) -> Value {
    if part.is_null() { NONE.into() } else { number(&part[member]).into() }
}
