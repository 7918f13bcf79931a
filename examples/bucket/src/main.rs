//! Runs the bucket operator; `--manifests` prints what a cluster needs to know first.

use example_bucket::{Bucket, Directories, controller};
use operator::{Installation, Manager, definition};
use std::sync::Arc;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    if std::env::args().any(|word| word == "--manifests") {
        let installation =
            Installation::new("default", "bucket:latest").definition(definition::of::<Bucket>());
        print!("{}", configure(Manager::disconnected("bucket")).manifests(&installation));
        return Ok(());
    }
    configure(Manager::connect("bucket").await?).run().await
}

fn configure(manager: Manager) -> Manager {
    let controller = controller(Arc::new(Directories("buckets".into())));
    manager.elect_in("default").probes(([0, 0, 0, 0], 8080)).controller(controller)
}
