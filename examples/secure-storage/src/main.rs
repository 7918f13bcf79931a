//! Runs the operator with a fake cloud; `--manifests` prints the definitions and RBAC rules to install first.

use example_secure_storage::{KeyVaultAccess, SecureStorage, StorageAccount, cloud, controller};
use operator::{Manager, definition, rules::Access};
use std::time::Duration;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    let [accounts, accesses] = cloud::controllers(Duration::from_secs(30));
    let controller = controller();
    if std::env::args().any(|word| word == "--manifests") {
        let kinds = [
            definition::of::<SecureStorage>(),
            definition::of::<StorageAccount>(),
            definition::of::<KeyVaultAccess>(),
        ];
        kinds.iter().for_each(|kind| println!("{}---", definition::yaml(kind)));
        print!("{}", Access::new("default", controller.name(), controller.declared()).yaml());
        return Ok(());
    }
    let manager = Manager::connect(controller.name()).await?.elect_in("default");
    manager.controller(controller).controller(accounts).controller(accesses).run().await
}
