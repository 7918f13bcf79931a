//! Simulated storage: stands in for the controller of a CSI driver. It makes, grows and deletes volumes that hold
//! nothing.

mod claim_loop;
mod claim_plan;
mod default_class;
mod new_volume;
mod volume_loop;

use kube::Client;
use operator::Controller;

/// The name of the CSI driver, and the `provisioner` of a StorageClass whose volumes are simulated.
pub const PROVISIONER: &str = "simulated.setpoint.dev";

/// The default StorageClass of a cluster that has none when simulated nodes start.
pub const STORAGE_CLASS: &str = "standard";

/// The controllers of simulated storage, which write through `client`.
///
/// Drivers bring roles of their own, which an administrator installs. This one needs those of an administrator
/// itself: it creates the StorageClass [`STORAGE_CLASS`].
pub fn storage(client: &Client) -> Vec<Controller> {
    let controllers = [default_class::controller(), claim_loop::controller(), volume_loop::controller()];
    let with_client = |it: Controller| it.client(client.clone()).core_events().event_component(PROVISIONER);
    controllers.map(with_client).into()
}
