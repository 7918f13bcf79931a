//! Certificate plugins: who may approve and sign, and rejected subjects.

use super::story;
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use server::{Caller, Config};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request for a user of an organization.
pub(super) fn request(name: &str, signer: &str, common_name: &str, organization: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({"metadata": {"name": name}, "spec": {
        "request": STANDARD.encode(pem), "signerName": signer, "usages": ["client auth"],
    }})
}

#[test]
fn approving_and_signing_need_rights_on_the_signer() {
    story(Config::default(), |cluster| async move {
        let all = json!({"apiGroups": ["certificates.k8s.io"], "verbs": ["*"],
            "resources": ["certificatesigningrequests", "certificatesigningrequests/approval",
                "certificatesigningrequests/status"]});
        let signer = |verb: &str, name: &str| json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": [verb], "resourceNames": [name]});
        cluster
            .grant("ann", json!([all, signer("approve", "example.com/one"), signer("sign", "example.com/*")]))
            .await;
        let ann = || Caller::known("ann", "", Vec::new());
        for (name, signer, approves, signs) in [
            ("one", "example.com/one", 200, 200),
            ("two", "example.com/two", 403, 200),
            ("three", "other.com/x", 403, 403),
        ] {
            let mut request =
                cluster.made(&format!("POST {REQUESTS}"), request(name, signer, "x", "y")).await;
            request["status"]["conditions"] =
                json!([{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]);
            let approve = format!("PUT {REQUESTS}/{name}/approval");
            let answer = cluster.by(ann(), &approve, request.clone()).await;
            assert_eq!(answer.code, approves, "{name}: {}", answer.body);
            if approves == 403 {
                let message = format!(
                    "certificatesigningrequests.certificates.k8s.io \"{name}\" is forbidden: user not permitted to \
                     approve requests with signerName \"{signer}\""
                );
                answer.is_refused(name, 403, &message);
                cluster.made(&approve, request).await;
            }
            let failed = json!({"type": "Failed", "status": "True", "reason": "r", "message": "m"});
            let mut current = cluster.get(&format!("{REQUESTS}/{name}")).await;
            current["status"]["conditions"].as_array_mut().unwrap().push(failed);
            let answer = cluster.by(ann(), &format!("PUT {REQUESTS}/{name}/status"), current).await;
            assert_eq!(answer.code, signs, "{name}: {}", answer.body);
        }
    });
}

#[test]
fn client_certificates_for_system_masters_are_rejected() {
    story(Config::default(), |cluster| async move {
        let client = "kubernetes.io/kube-apiserver-client";
        let message = "certificatesigningrequests.certificates.k8s.io \"m\" is forbidden: use of \
                       kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
        cluster
            .refused(&format!("POST {REQUESTS}"), request("m", client, "me", "system:masters"), 403, message)
            .await;
        cluster.made(&format!("POST {REQUESTS}"), request("d", client, "me", "devs")).await;
    });
}
