//! CertificateSigningRequest: who asks for a certificate is set by the server, and who approves cannot sign.

mod strategy;
pub(super) mod validate;

use api::name::NameRule;

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::age::span;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, condition};
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::Strategy;
use crate::strategy::subresource::SubresourceRules;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static CERTIFICATE_SIGNING_REQUEST: BuiltIn =
    BuiltIn::new(GROUP, "CertificateSigningRequest", "certificatesigningrequests")
        .older_versions(&["v1beta1"])
        .strategy(
            Strategy::PLAIN
                .named(NameRule::PathSegment)
                .status()
                .resets(&[&["spec"], &["status"]])
                .status_resets(&[&["spec"], &["status", "conditions"]])
                .on_create(strategy::prepare_create)
                .on_update(strategy::prepare_update)
                .on_status(strategy::prepare_status)
                .subresources(&[SubresourceRules::writes_all_but(
                    "approval",
                    strategy::prepare_approval,
                    &[&["spec"], &["status", "certificate"]],
                )]),
        )
        .validation(
            Validation::new(validate::check)
                .update(UpdateChecks::AS_NEW.compare(validate::check_change))
                .named(NameRule::PathSegment)
                .subresources(&[("status", validate::check_status), ("approval", validate::check_approval)]),
        )
        .columns(&[
            NAME,
            AGE,
            string("SignerName", Cell::Computed(|it| it.text_or("/spec/signerName", NONE).into())),
            string("Requestor", Cell::Text("/spec/username")),
            string("RequestedDuration", Cell::Computed(|it| requested_duration(it).into())),
            string("Condition", Cell::Computed(|it| state(it).into())),
        ])
        .selectable(Selectable::new(&[SelectableField::NAME, SelectableField::text("spec.signerName")]));

fn requested_duration(request: &Row<'_>) -> String {
    let seconds = request.at("/spec/expirationSeconds").as_i64();
    seconds.map_or_else(|| NONE.to_owned(), span)
}

fn state(it: &Row<'_>) -> String {
    let has = |kind: &str| condition(it.at("/status/conditions"), kind).is_some();
    let verdict = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if it.text("/status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{verdict}{failed}{issued}")
}
