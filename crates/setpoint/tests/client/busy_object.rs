//! `setpoint apply` of an object that others write at the same time.

use super::{Folder, text};
use crate::{harness::SETPOINT, kube_client::with_client_of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::process::{Command, Stdio};

#[test]
fn an_apply_that_changes_nothing_says_so_while_others_write_the_object() {
    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: busy}\ndata: {ours: '1'}\n";
    let folder = Folder::new();
    folder.file("busy.yaml", MAP);
    assert_eq!(folder.says("apply -f busy.yaml"), "configmap/busy created\n");
    let Folder { up, scratch } = folder;
    with_client_of(up, async |client| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let mut applies = Command::new("sh");
        applies.args(["-c", "for _ in $(seq 20); do \"$0\" apply -f busy.yaml; done", SETPOINT]);
        applies.env_remove("KUBECONFIG").env("HOME", scratch.path()).current_dir(scratch.path());
        let mut applies = applies.stdout(Stdio::piped()).spawn().unwrap();
        let mut written = 0;
        while applies.try_wait().unwrap().is_none() {
            let patch = json!({"data": {"theirs": written.to_string()}});
            maps.patch("busy", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            written += 1;
        }
        let said = text(&applies.wait_with_output().unwrap().stdout);
        assert!(written > 20, "{written} writes beside 20 applies");
        assert_eq!(said, "configmap/busy unchanged\n".repeat(20));
    });
}
