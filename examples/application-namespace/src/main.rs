//! Runs the operator; `--manifests` prints what a cluster needs to know first.

use example_application_namespace::{ApplicationNamespace, controller};
use operator::{Manager, definition, rules::Access};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    let controller = controller();
    if std::env::args().any(|word| word == "--manifests") {
        let access = Access::new("default", controller.name(), controller.declared());
        print!("{}---\n{}", definition::yaml(&definition::of::<ApplicationNamespace>()), access.yaml());
        return Ok(());
    }
    Manager::connect(controller.name()).await?.elect_in("default").controller(controller).run().await
}
