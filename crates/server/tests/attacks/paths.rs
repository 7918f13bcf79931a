//! Headers and paths that two readers parse differently: they give access to nothing.

use super::{SECRET_A, bearer};
use crate::access::place;
use serde_json::{Value, json};

/// Spellings of paths that must not be readable.
const PATHS: &[&str] = &[
    "/api/v1/namespaces/a/secrets/hidden",
    "/api/v1/namespaces/a/secrets/hidden?access_token=root",
    "/api/v1/namespaces/a/secrets",
    "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%21%3Donly",
    "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dhidden",
    "/api/v1/namespaces/b/secrets/only",
    "/api/v1/namespaces/b/configmaps",
    "/api/v1/configmaps",
    "/api/v1/watch/namespaces/a/secrets",
    "/api/v1/watch/configmaps",
    "/api/v1/namespaces/a/configmaps/../secrets/hidden",
    "/api/v1/namespaces/a/configmaps/%2e%2e/secrets/hidden",
    "/api/v1/namespaces/a/configmaps/..%2fsecrets%2fhidden",
    "/api/v1/namespaces/a/../b/secrets/hidden",
    "/api/v1/namespaces/a%2f..%2fb/secrets/hidden",
    "/api/v1/namespaces/a/configmaps/%252e%252e/secrets/hidden",
    "/api/v1/namespaces/a//secrets/hidden",
    "//api/v1/namespaces/a/secrets/hidden",
    "/api//v1/namespaces/a/secrets/hidden",
    "/api/v1/namespaces//secrets/hidden",
    "/api/v1/namespaces/%20/secrets/hidden",
    "/api/v1/namespaces/a/secrets/only/../hidden",
    "/api/v1/namespaces/a/secrets/only%2f..%2fhidden",
    "/api/v1/namespaces/a/secrets/hidden%00only",
    "/api/v1/namespaces/a/secrets/hidden%3fonly",
    "/api/v1/namespaces/a/Secrets/hidden",
    "/apis/v1/namespaces/a/secrets/hidden",
    "/API/v1/namespaces/a/secrets/hidden",
    "/healthz/../api/v1/namespaces/a/secrets/hidden",
    "/version/../api/v1/namespaces/a/secrets/hidden",
    "/api/v1/proxy/namespaces/a/secrets/hidden",
    "/metrics",
    "/healthz/../metrics",
    "/api/v1/namespaces/a/secrets/./hidden",
    "/api/v1/namespaces/a/./secrets/hidden",
    "/api/v1/namespaces/a/secrets/hidden/",
    "/api/v1/namespaces/a/secrets/hidden/.",
    "/api/v1/namespaces/a/secrets/hidden.",
    "/api/v1/namespaces/a/secrets./hidden",
    "/api/v1/namespaces/a./secrets/hidden",
    "/api/v1/namespaces/a/secrets/hidden;only",
    "/api/v1/namespaces/a/secrets;x=y/hidden",
    "/api/v1/namespaces/a;b/secrets/hidden",
    "/api/v1/namespaces/a/secrets/only;/../hidden",
    "/api/v1/namespaces/a/configmaps/..;/secrets/hidden",
    "/api/v1/namespaces/a/configmaps/%2e%2e%2fsecrets%2fhidden",
    "/api/v1/namespaces/a/configmaps/.%2e/secrets/hidden",
    "/api/v1/namespaces/a/configmaps/%c0%ae%c0%ae/secrets/hidden",
    "/api/v1/namespaces/a/configmaps/%ef%bc%8e%ef%bc%8e/secrets/hidden",
    "/api/v1/namespaces/a/configmaps%5c..%5csecrets%5chidden",
    "/api/v1/namespaces/a%5csecrets/hidden",
    "/api/v1/namespaces/a/secrets%2fhidden",
    "/api/v1/namespaces/a/%73ecrets/hidden",
    "/api/v1/namespaces/a/secrets/%68idden",
    "/api/v1/namespaces/a/secrets/hidden%20",
    "/api/v1/namespaces/a/secrets/%20hidden",
    "/api/v1/namespaces/a/secrets/hidden%0a",
    "/api/v1/namespaces/a/secrets/hidden%23only",
    "/api/v1/namespaces/a/secrets/HIDDEN",
    "/api/v1/NAMESPACES/a/secrets/hidden",
    "/api/V1/namespaces/a/secrets/hidden",
    "/api/v1/namespaces/A/secrets/hidden",
    "/api/v1/namespaces/*/secrets/hidden",
    "/api/v1/namespaces/a/secrets/*",
    "/api/v1/namespaces/a/*",
    "/api/v1/namespaces/a/configmaps,secrets/hidden",
    "/api/v1/namespaces/a/secrets/only?resourceNames=hidden&name=hidden",
    "/api/v1/namespaces/a/secrets/only/hidden",
    "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dhidden&fieldSelector=metadata.name%3Donly",
    "/api/v1/secrets?fieldSelector=metadata.name%3Donly",
    "/api/v1/namespaces/a/secrets/only/status",
    "/api/v1/namespaces/a/serviceaccounts/bot/token",
    "/registry/secrets/a/hidden",
    "/debug/api_priority_and_fairness/dump_priority_levels",
    "/%6detrics",
    "/metrics/",
    "//metrics",
    "/metrics;/healthz",
    "/healthz/%2e%2e/metrics",
];

#[test]
fn ambiguous_headers_and_paths_give_no_access() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let rules = json!([
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]},
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["only"]},
        ]);
        place.grant("a", "system:serviceaccount:a:bot", rules).await;
        let token = place.token("a", json!({})).await;
        for (attack, mut headers) in
            [("a bad one after a good one", bearer("root")), ("a good one after a bad one", bearer("bad"))]
        {
            headers.extend(bearer(if attack.starts_with("a bad") { "bad" } else { "root" }));
            assert_eq!(place.send(&headers, SECRET_A, Value::Null).await.0, 401, "{attack}");
        }
        for (attack, header, value, code) in [
            ("a proxy's word", "x-remote-user", "root", 403),
            ("a proxy's word on groups", "x-remote-group", "system:masters", 403),
            ("a password", "authorization", "Basic cm9vdDpyb290", 403),
            ("another scheme", "authorization", "Token root", 403),
            ("no token", "authorization", "Bearer", 403),
            ("two tokens in one", "authorization", "Bearer bad,root", 401),
            ("a list of schemes", "authorization", "Bearer bad, Bearer root", 401),
            ("a certificate as text", "x-client-cert", "CN=root,O=system:masters", 403),
            ("a proxy's certificate", "x-forwarded-client-cert", "Subject=\"CN=root,O=system:masters\"", 403),
            ("a proxy's word on more", "x-remote-extra-scopes", "all", 403),
            ("a proxy's word on the uid", "x-remote-uid", "u-root", 403),
            ("where it comes from", "x-forwarded-for", "127.0.0.1", 403),
            ("another method", "x-http-method-override", "GET", 403),
            ("another path", "x-original-url", "/healthz", 403),
            ("another path, in other words", "x-rewrite-url", "/healthz", 403),
            ("a token in a cookie", "cookie", "token=root; Authorization=Bearer root", 403),
            (
                "a token for a socket",
                "sec-websocket-protocol",
                "base64url.bearer.authorization.k8s.io.cm9vdA",
                403,
            ),
            ("a token for a proxy", "proxy-authorization", "Bearer root", 403),
            ("a token in other letters", "authorization", "bEaReR ROOT", 401),
            ("a token and a second line", "authorization", "Bearer bad\troot", 401),
        ] {
            let (found, text) = place.send(&[(header, value.to_owned())], SECRET_A, Value::Null).await;
            assert_eq!(found, code, "{attack}: {text}");
            assert!(!text.contains("dHJlYXN1cmU"), "{attack}");
        }
        for path in PATHS {
            let (code, text) = place.send(&bearer(&token), &format!("GET {path}"), Value::Null).await;
            assert!(matches!(code, 400 | 403 | 404), "{path}: {code} {text}");
            assert!(!text.contains("dHJlYXN1cmU") && !text.contains("\"items\""), "{path}: {text}");
        }
        let fine = "GET /api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Donly";
        assert_eq!(place.send(&bearer(&token), fine, Value::Null).await.0, 200, "what is allowed is");
    });
    run.unwrap();
}
