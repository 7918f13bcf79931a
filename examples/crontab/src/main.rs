//! Runs the CronTab operator; `--manifests` prints what a cluster needs to know first.

use example_crontab::{NAME, configure, manifests};
use operator::Manager;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are for a pipe")]
async fn main() -> Result<(), operator::Error> {
    tracing_subscriber::fmt().init();
    if std::env::args().any(|word| word == "--manifests") {
        print!("{}", manifests(Manager::disconnected(NAME)));
        return Ok(());
    }
    configure(Manager::connect(NAME).await?).run().await
}
