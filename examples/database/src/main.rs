//! Runs the database operator; `--manifests` prints what a cluster needs to know first.

use example_database::{Directories, NAME, controller, definition, site, webhooks};
use operator::{Installation, Manager, webhook::Address};
use std::sync::Arc;

/// Where the operator listens for webhooks; the cluster reaches it under this URL.
const WEBHOOK_PORT: u16 = 9443;
const WEBHOOK_URL: &str = "https://127.0.0.1:9443";

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    if std::env::args().any(|word| word == "--manifests") {
        let installation = Installation::new("default", "database:latest").definition(definition());
        print!("{}", configure(Manager::disconnected(NAME)).manifests(&installation));
        return Ok(());
    }
    configure(Manager::connect(NAME).await?).run().await
}

fn configure(manager: Manager) -> Manager {
    let site = site(Address::Url(WEBHOOK_URL.to_owned()));
    let manager = manager.elect_in("default").webhooks(webhooks(), ([127, 0, 0, 1], WEBHOOK_PORT), site);
    manager.controller(controller(Arc::new(Directories("backups".into()))))
}
