//! Attacks as tables: every line is rejected, and reveals nothing.
//!
//! | file | attack |
//! |---|---|
//! | `tokens` | forged, replayed or swapped tokens |
//! | `bootstrap_tokens` | bootstrap tokens that are guessed, malformed, expired, or name groups of others |
//! | `grants` | escalation through roles, bindings and impersonation |
//! | `paths` | paths and headers that two readers parse differently |
//! | `smuggling` | a request hidden in another, over real sockets |
//! | `webhooks` | webhooks that loop, redirect or send endless answers |
//! | `create_rights` | creates without the right to |
//! | `growth` | small bodies that decode to large objects |
//! | `nesting` | objects nested too deep to be read back |
//! | `clocks` | seconds beyond any clock |
//! | `patterns` | regular expressions that take long to compile |
//! | `damage` | damaged admission configurations in the store: writes are rejected |
//! | `panics` | requests that make a handler panic |
//! | `proxies` | pods that lead the server astray, exhaust it, or never end; users who take all connections or hide who asks |

mod bootstrap_tokens;
mod clocks;
mod create_rights;
mod damage;
mod devices;
mod grants;
mod growth;
mod nesting;
mod panics;
mod paths;
mod patterns;
mod proxies;
mod smuggling;
mod tokens;
mod webhooks;

const SECRET_A: &str = "GET /api/v1/namespaces/a/secrets/hidden";
const SELF_REVIEW: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

fn bearer(token: &str) -> Vec<(&'static str, String)> {
    vec![("authorization", format!("Bearer {token}"))]
}
