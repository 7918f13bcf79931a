//! Runs the bucket operator; `--manifests` prints what a cluster needs to know first.

use example_bucket::{Bucket, Directories, controller};
use operator::{Manager, definition, rules::Access};
use std::sync::Arc;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    let controller = controller(Arc::new(Directories("buckets".into())));
    if std::env::args().any(|word| word == "--manifests") {
        let access = Access::new("default", "bucket", controller.declared());
        print!("{}---\n{}", definition::yaml(&definition::of::<Bucket>()), access.yaml());
        return Ok(());
    }
    Manager::connect("bucket").await?.elect_in("default").controller(controller).run().await
}
