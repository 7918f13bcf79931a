//! What nobody may get away with, as tables: every line is refused, and says nothing that it should not.
//!
//! | file | whose attacks |
//! |---|---|
//! | `tokens` | those who forge, replay or swap tokens |
//! | `grants` | those who write roles and bindings, or act as others |
//! | `paths` | those who spell paths and headers so that two readers differ |
//! | `smuggling` | those who hide a request in another, over real sockets |
//! | `webhooks` | webhooks that loop, send elsewhere or never stop talking |
//! | `create_rights` | those who make things without the right to |
//! | `growth` | those whose small bodies grow large when they are read |
//! | `nesting` | those who send what nobody can read back |
//! | `clocks` | those who send numbers that no clock can count |
//! | `patterns` | those whose regular expressions take long to compile |
//! | `damage` | those who can write to the disk: rules that cannot be read any more let nothing pass |
//! | `panics` | those who find a bug that panics |

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
mod smuggling;
mod tokens;
mod webhooks;

const SECRET_A: &str = "GET /api/v1/namespaces/a/secrets/hidden";
const WHO: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

fn bearer(token: &str) -> Vec<(&'static str, String)> {
    vec![("authorization", format!("Bearer {token}"))]
}
