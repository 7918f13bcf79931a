//! Runs the operator against the cluster of your kubeconfig; `--definition` prints its type for `kubectl apply`.

use greeting::{Greeting, controller};
use operator::{Manager, definition};
use std::io::Write;

#[tokio::main]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    if std::env::args().any(|word| word == "--definition") {
        let definition = definition::yaml(&definition::of::<Greeting>());
        std::io::stdout().write_all(definition.as_bytes()).expect("someone reads it");
        return Ok(());
    }
    Manager::connect("greeting").await?.controller(controller()).run().await
}
