//! The operator with a control plane of its own.

use greeting::{Greeting, controller};
use k8s_openapi::api::core::v1::ConfigMap;
use operator::{Manager, definition};

#[test]
fn a_greeting_has_a_text_that_comes_back() {
    testkit::run(|cluster| async move {
        cluster.apply(&definition::yaml(&definition::of::<Greeting>())).await;
        let client = cluster.client_as("greeting", &["system:masters"]);
        let _operator =
            cluster.run(Manager::new("greeting", cluster.world(), client).controller(controller()));

        let world = "{apiVersion: example.com/v1, kind: Greeting, metadata: {name: a}, spec: {whom: world}}";
        cluster.apply(world).await;
        cluster.settle().await;
        let text: ConfigMap = cluster.get("default", "a-text").await;
        assert_eq!(text.data.unwrap()["text"], "Hello, world!");

        // Someone deletes it: the operator brings it back.
        cluster.delete::<ConfigMap>("default", "a-text").await;
        cluster.settle().await;
        cluster.get::<ConfigMap>("default", "a-text").await;
    });
}
