//! Versions of a type, through one hub: by the server, and there and back.

use super::{URL, handle_webhooks};
use kube::{CustomResource, CustomResourceExt, api::ObjectMeta};
use operator::{
    BoxError,
    webhook::{Address, Certificates, Conversion, Hub, Site, Spoke, Webhooks, hub_round_trip, round_trip},
};
use proptest::{option, prelude::*};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

mod v1 {
    use super::*;
    /// Says the size in words.
    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Disk", namespaced)]
    pub(super) struct DiskSpec {
        pub(super) size: String,
    }
}

mod v2 {
    use super::*;
    /// Says the size in numbers, and has a colour.
    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Disk", namespaced)]
    pub(super) struct DiskSpec {
        pub(super) bytes: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) colour: Option<String>,
    }
}

mod v3 {
    use super::*;
    /// Forgets the colour.
    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v3", kind = "Disk", namespaced)]
    pub(super) struct DiskSpec {
        pub(super) bytes: u32,
    }
}

/// Where version 1 keeps what it cannot say.
const COLOUR: &str = "example.com/colour";

impl Hub for v2::Disk {}

impl Spoke for v1::Disk {
    type Hub = v2::Disk;

    fn to_hub(mut self) -> Result<v2::Disk, BoxError> {
        let annotations = self.metadata.annotations.as_mut();
        let colour = annotations.and_then(|annotations| annotations.remove(COLOUR));
        self.metadata.annotations = self.metadata.annotations.filter(|annotations| !annotations.is_empty());
        let bytes = self.spec.size.parse()?;
        Ok(v2::Disk { metadata: self.metadata, spec: v2::DiskSpec { bytes, colour } })
    }

    fn from_hub(mut hub: v2::Disk) -> Result<v1::Disk, BoxError> {
        if let Some(colour) = hub.spec.colour {
            hub.metadata.annotations.get_or_insert_default().insert(COLOUR.to_owned(), colour);
        }
        Ok(v1::Disk { metadata: hub.metadata, spec: v1::DiskSpec { size: hub.spec.bytes.to_string() } })
    }
}

impl Spoke for v3::Disk {
    type Hub = v2::Disk;

    fn to_hub(self) -> Result<v2::Disk, BoxError> {
        Ok(v2::Disk { metadata: self.metadata, spec: v2::DiskSpec { bytes: self.spec.bytes, colour: None } })
    }

    fn from_hub(hub: v2::Disk) -> Result<v3::Disk, BoxError> {
        Ok(v3::Disk { metadata: hub.metadata, spec: v3::DiskSpec { bytes: hub.spec.bytes } })
    }
}

fn webhooks() -> Webhooks {
    Webhooks::new("disks")
        .conversion(Conversion::through::<v2::Disk>().spoke::<v1::Disk>().spoke::<v3::Disk>())
}

/// The definition of disks in all three versions, the second being kept.
fn definition() -> Value {
    let mut definition = serde_json::to_value(v2::Disk::crd()).unwrap();
    let mut versions = vec![definition["spec"]["versions"][0].take()];
    for other in [v1::Disk::crd(), v3::Disk::crd()] {
        let mut other = serde_json::to_value(other).unwrap()["spec"]["versions"][0].take();
        other["storage"] = json!(false);
        versions.push(other);
    }
    definition["spec"]["versions"] = json!(versions);
    definition
}

#[test]
fn objects_are_read_and_written_in_every_version() {
    testkit::run(|cluster| async move {
        cluster.apply_object(&definition()).await;
        let webhooks = Arc::new(webhooks());
        handle_webhooks(&cluster, &webhooks);
        let (world, client) = (cluster.world().clone(), cluster.client());
        let certificates =
            Certificates::Shared { namespace: "default".to_owned(), secret: "hooks".to_owned() };
        let site = Site { address: Address::Url(URL.to_owned()), certificates };
        let _keeping = cluster.world().spawn("webhooks", async move {
            webhooks.keep_registered(&world, client, site).await.unwrap();
        });
        cluster.settle().await;

        let mut old = v1::Disk::new("a", v1::DiskSpec { size: "7".to_owned() });
        old.metadata.namespace = Some("default".to_owned());
        let made = cluster.create(&old).await;
        assert_eq!(made.spec, old.spec);
        let painted = json!({"spec": {"colour": "red"}});
        let new: v2::Disk = cluster.patch("default", "a", &painted).await;
        assert_eq!((new.spec.bytes, new.spec.colour.as_deref()), (7, Some("red")));
        assert_eq!(new.metadata.uid, made.metadata.uid);
        let grown: v1::Disk = cluster.patch("default", "a", &json!({"spec": {"size": "8"}})).await;
        assert_eq!(grown.metadata.annotations.unwrap()[COLOUR], "red");
        let new: v2::Disk = cluster.get("default", "a").await;
        assert_eq!((new.spec.bytes, new.spec.colour.as_deref()), (8, Some("red")));
        assert_eq!(cluster.get::<v3::Disk>("default", "a").await.spec.bytes, 8);
        let refused =
            cluster.try_patch::<v1::Disk>("default", "a", &json!({"spec": {"size": "large"}})).await;
        let kube::Error::Api(status) = refused.unwrap_err() else { panic!("the server refuses") };
        assert!(
            status.message.contains("Disk \"a\" cannot be converted to example.com/v2"),
            "{}",
            status.message
        );
    });
}

proptest! {
    #[test]
    fn version_1_loses_no_field(bytes: u32, colour in option::of("[a-z]+")) {
        let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
        round_trip(v1::Disk { metadata: metadata.clone(), spec: v1::DiskSpec { size: bytes.to_string() } }).unwrap();
        hub_round_trip::<v1::Disk>(v2::Disk { metadata, spec: v2::DiskSpec { bytes, colour } }).unwrap();
    }
}

#[test]
fn the_error_names_the_lost_field() {
    let disk = v2::Disk::new("a", v2::DiskSpec { bytes: 1, colour: Some("red".to_owned()) });
    let lost = hub_round_trip::<v3::Disk>(disk).unwrap_err();
    assert_eq!(lost.to_string(), "Disk v2 → v3 → v2: spec.colour was \"red\" and is now null");
    let failed = round_trip(v1::Disk::new("a", v1::DiskSpec { size: "large".to_owned() })).unwrap_err();
    assert_eq!(failed.to_string(), "Disk v1 → v2 → v1 fails");
}
