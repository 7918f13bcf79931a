//! Runs the digest operator against the cluster of your kubeconfig, or of the pod it runs in.

use operator::Manager;

#[tokio::main]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    let manager = Manager::connect("digest").await?;
    manager.elect_in("default").controller(example_digest::controller()).run().await
}
