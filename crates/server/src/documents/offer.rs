//! Content negotiation of OpenAPI documents.

/// A media type in `Accept`, and the Content-Type of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    accepts: &'static str,
    pub(super) answered: &'static str,
    pub(super) is_protobuf: bool,
}

const JSON: Offer = Offer { accepts: "application/json", answered: "application/json", is_protobuf: false };
const OLDER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`.
// Kubernetes: old clients use the name with `@`.
pub(super) const OLDER: [Offer; 3] = [
    JSON,
    Offer {
        accepts: "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        answered: OLDER_PROTOBUF,
        is_protobuf: true,
    },
    Offer { accepts: OLDER_PROTOBUF, answered: OLDER_PROTOBUF, is_protobuf: true },
];

/// `/openapi/v3/…`.
pub(super) const NEWER: [Offer; 1] = [JSON];

/// The first offer that matches the client's preferred clause.
pub(super) fn choose(accept: &str, offers: &[Offer]) -> Option<Offer> {
    let accept = if accept.trim().is_empty() { "*/*" } else { accept };
    let mut clauses: Vec<_> = accept.split(',').filter_map(clause).collect();
    // By weight, then the most specific first.
    clauses.sort_by(|(one, one_weight), (other, other_weight)| {
        let vague = |(kind, sub): &(&str, &str)| (*kind == "*", *sub == "*");
        other_weight.total_cmp(one_weight).then(vague(one).cmp(&vague(other)))
    });
    let fits = |(kind, sub): (&str, &str), offer: &&Offer| {
        let (offered_kind, offered_sub) = offer.accepts.split_once('/').unwrap_or_default();
        (kind == "*" || kind == offered_kind) && (sub == "*" || sub == offered_sub)
    };
    clauses.into_iter().find_map(|(wanted, _)| offers.iter().find(|offer| fits(wanted, offer)).copied())
}

/// Type, subtype and weight.
fn clause(text: &str) -> Option<((&str, &str), f64)> {
    let mut parts = text.split(';').map(str::trim);
    let wanted = parts.next()?.split_once('/')?;
    let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse().ok());
    Some((wanted, weight.unwrap_or(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_available_type_is_chosen() {
        let json = Some("application/json");
        let protobuf = Some(OLDER_PROTOBUF);
        for (accept, expected) in [
            ("", json),
            ("*/*", json),
            ("application/*", json),
            ("application/json", json),
            ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", protobuf),
            ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", protobuf),
            ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf;q=0.5,application/json", json),
            ("*/*;q=0.9, application/com.github.proto-openapi.spec.v2@v1.0+protobuf", protobuf),
            ("text/html", None),
        ] {
            assert_eq!(choose(accept, &OLDER).map(|offer| offer.answered), expected, "{accept}");
        }
    }
}
