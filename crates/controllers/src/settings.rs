//! What control loops need to know from outside of the cluster.

use serde_json::Value;
use std::{fmt, sync::Arc};

/// Signs the claims of a service account token, and returns it as a JWT.
pub type SignToken = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// Settings of the control loops. A loop that lacks its own does not run.
#[derive(Clone, Default)]
pub struct Settings {
    /// The certificate of the CA that pods trust for the API server, as PEM.
    pub root_ca: Option<String>,
    /// For tokens in secrets, which do not expire.
    pub sign_token: Option<SignToken>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { root_ca, sign_token } = self;
        out.debug_struct("Settings")
            .field("root_ca", &root_ca.is_some())
            .field("sign_token", &sign_token.is_some())
            .finish()
    }
}
