//! Runs the database operator; `--manifests` prints what a cluster needs to know first.

use example_database::{Directories, NAME, controller, definition, site, webhooks};
use operator::{Manager, definition::yaml, rules::Access, webhook::Address};
use std::sync::Arc;

/// Where the operator listens for webhooks; the cluster reaches it under this URL.
const WEBHOOK_PORT: u16 = 9443;
const WEBHOOK_URL: &str = "https://127.0.0.1:9443";

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    let controller = controller(Arc::new(Directories("backups".into())));
    if std::env::args().any(|word| word == "--manifests") {
        let mut access = Access::new("default", NAME, controller.declared());
        access.cluster_role.rules.get_or_insert_default().extend(webhooks().rules());
        print!("{}---\n{}", yaml(&definition()), access.yaml());
        return Ok(());
    }
    let site = site(Address::Url(WEBHOOK_URL.to_owned()));
    let manager = Manager::connect(NAME).await?.elect_in("default");
    let manager = manager.webhooks(webhooks(), ([127, 0, 0, 1], WEBHOOK_PORT), site);
    manager.controller(controller).run().await
}
