//! What nobody may get away with, as a table: every line is refused, and says nothing that it should not.

use crate::access::{Place, place};
use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use server::SigningKey;
use std::time::Duration;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const SECRET_A: &str = "GET /api/v1/namespaces/a/secrets/hidden";
const WHO: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

fn bearer(token: &str) -> Vec<(&'static str, String)> {
    vec![("authorization", format!("Bearer {token}"))]
}

/// Signs whatever it is given, with the key of a PEM text.
struct Forger(EcdsaKeyPair);

impl Forger {
    fn new(pem: &str) -> Forger {
        let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(text).unwrap();
        Forger(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).unwrap())
    }

    fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn parts(token: &str) -> (String, String, String) {
    let decode = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let parts: Vec<_> = token.split('.').collect();
    (decode(parts[0]), decode(parts[1]), parts[2].to_owned())
}

#[test]
fn tampered_tokens_name_nobody() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let good = place.token("a", json!({})).await;
        assert_eq!(place.send(&bearer(&good), WHO, json!({})).await.0, 201);
        let (header, claims, signature) = parts(&good);
        let ours = Forger::new(&place.key);
        let theirs = Forger::new(&SigningKey::make().unwrap().1);
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let with = |member: &str, value: Value| {
            let mut claims: Value = serde_json::from_str(&claims).unwrap();
            claims[member] = value;
            claims.to_string()
        };
        let (_, keys) = place.by("root", "GET /openid/v1/jwks", Value::Null).await;
        let hs256 = |secret: &[u8]| {
            let signed = format!("{}.{}", encode(r#"{"alg":"HS256"}"#), encode(&claims));
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
        };
        let other_account = claims
            .replace("serviceaccount:a:bot", "serviceaccount:b:bot")
            .replace(r#""namespace":"a""#, r#""namespace":"b""#);
        let future = place.world.wall().as_second() + 3600;
        for (attack, token) in [
            ("no signature", format!("{}.{}.", encode(r#"{"alg":"none"}"#), encode(&claims))),
            ("no signature, other letters", format!("{}.{}.", encode(r#"{"alg":"NoNe"}"#), encode(&claims))),
            (
                "the signature of other claims",
                format!("{}.{}.{signature}", encode(&header), encode(&other_account)),
            ),
            ("the public key as a password", hs256(keys["keys"][0]["x"].as_str().unwrap().as_bytes())),
            ("the whole key as a password", hs256(keys["keys"][0].to_string().as_bytes())),
            ("a key of their own", theirs.sign(&header, &claims)),
            ("a key of their own, without a name", theirs.sign(r#"{"alg":"ES256"}"#, &claims)),
            (
                "a key in the header",
                theirs.sign(&format!(r#"{{"alg":"ES256","jwk":{}}}"#, keys["keys"][0]), &claims),
            ),
            (
                "a key from elsewhere",
                theirs.sign(r#"{"alg":"ES256","jku":"https://evil/keys","kid":"x"}"#, &claims),
            ),
            ("a critical extension", ours.sign(r#"{"alg":"ES256","crit":["exp"]}"#, &claims)),
            ("another algorithm", ours.sign(r#"{"alg":"RS256"}"#, &claims)),
            ("two algorithms", ours.sign(r#"{"alg":"ES256","alg":"none"}"#, &claims)),
            ("two subjects", ours.sign(&header, &claims.replacen('{', r#"{"sub":"root","#, 1))),
            ("another issuer", ours.sign(&header, &with("iss", "https://evil".into()))),
            ("another audience", ours.sign(&header, &with("aud", json!(["vault"])))),
            ("not valid yet", ours.sign(&header, &with("nbf", future.into()))),
            ("from the future", ours.sign(&header, &with("iat", future.into()))),
            ("never expires", ours.sign(&header, &with("exp", Value::Null))),
            ("bound to nobody", ours.sign(&header, &with("kubernetes.io", json!({})))),
            ("another account with this uid", ours.sign(&header, &other_account)),
            ("a huge token", ours.sign(&header, &with("jti", "x".repeat(100_000).into()))),
            ("a million dots", ".".repeat(100_000)),
            (
                "JSON form",
                json!({"payload": encode(&claims), "protected": encode(&header), "signature": signature})
                    .to_string(),
            ),
            ("a static token and more", "root.".to_owned()),
            ("half a static token", "roo".to_owned()),
        ] {
            let (code, text) = place.send(&bearer(&token), WHO, json!({})).await;
            assert_eq!(code, 401, "{attack}: {text}");
            assert!(!text.contains(&token) && text.len() < 500, "{attack} is echoed");
        }
    });
    run.unwrap();
}

#[test]
fn tokens_die_with_what_they_are_of() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let ask = async |token: &str| place.send(&bearer(token), WHO, json!({})).await.0;
        let secret = json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "hidden"}});
        let (hour, day, bound) = (
            place.token("a", json!({})).await,
            place.token("a", json!({"expirationSeconds": 86400})).await,
            place.token("a", secret).await,
        );
        assert_eq!((ask(&hour).await, ask(&day).await, ask(&bound).await), (201, 201, 201));
        place.root("DELETE /api/v1/namespaces/a/secrets/hidden", Value::Null).await;
        assert_eq!((ask(&bound).await, ask(&day).await), (401, 201), "its secret is gone");
        place.world.sleep(Duration::from_secs(3700)).await;
        assert_eq!((ask(&hour).await, ask(&day).await), (401, 201), "it has expired");
        place.root("DELETE /api/v1/namespaces/a/serviceaccounts/bot", Value::Null).await;
        assert_eq!(ask(&day).await, 401, "the account is gone");
        let again = json!({"metadata": {"name": "bot"}});
        place.root("POST /api/v1/namespaces/a/serviceaccounts", again).await;
        assert_eq!(ask(&day).await, 401, "another account has its name");
    });
    run.unwrap();
}

#[test]
fn headers_and_paths_lead_nowhere_else() {
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
        ] {
            let (found, text) = place.send(&[(header, value.to_owned())], SECRET_A, Value::Null).await;
            assert_eq!(found, code, "{attack}: {text}");
            assert!(!text.contains("dHJlYXN1cmU"), "{attack}");
        }
        for path in [
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
        ] {
            let (code, text) = place.send(&bearer(&token), &format!("GET {path}"), Value::Null).await;
            assert!(matches!(code, 400 | 403 | 404), "{path}: {code} {text}");
            assert!(!text.contains("dHJlYXN1cmU") && !text.contains("\"items\""), "{path}: {text}");
        }
        let fine = "GET /api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Donly";
        assert_eq!(place.send(&bearer(&token), fine, Value::Null).await.0, 200, "what is allowed is");
    });
    run.unwrap();
}

/// Bob writes roles and bindings in `a`, reads pods there, and writes cluster roles.
async fn with_granter(place: &Place) {
    let names = ["roles", "rolebindings", "clusterroles"];
    let verbs = ["get", "create", "update", "patch"];
    let rules = json!([
        {"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": &names[..2]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    ]);
    place.grant("a", "bob", rules).await;
    let rules =
        json!([{"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": [names[2]]}]);
    place.grant_all("bob", rules).await;
    let roles = format!("POST {RBAC}/namespaces/a/roles");
    let pods = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let made = place.by("bob", &roles, json!({"metadata": {"name": "mine"}, "rules": pods})).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let subjects = json!([{"kind": "User", "name": "ann"}]);
    let binding = json!({"metadata": {"name": "mine"}, "roleRef": {"kind": "Role", "name": "mine"}, "subjects": subjects});
    let made = place.by("bob", &format!("POST {RBAC}/namespaces/a/rolebindings"), binding).await;
    assert_eq!(made.0, 201, "{}", made.1);
}

#[test]
fn nobody_grants_what_they_do_not_have() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        with_granter(&place).await;
        let more = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
        let refused = |what: &str, missing: &str| {
            format!(
                "{what} is forbidden: user \"bob\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{missing}"
            )
        };
        let secrets = r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#;
        let role = |name: &str| refused(&format!("roles.rbac.authorization.k8s.io \"{name}\""), secrets);
        let everything =
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
        let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
        let bob = json!([{"kind": "User", "name": "bob"}]);
        let bind = |kind: &str, name: &str| json!({"metadata": {"name": "x"}, "roleRef": {"kind": kind, "name": name}, "subjects": bob});
        let apply = "application/apply-patch+yaml";
        for (what, sort, body, expected) in [
            ("POST /namespaces/a/roles", "", json!({"metadata": {"name": "x"}, "rules": more}), role("x")),
            ("PUT /namespaces/a/roles/mine", "", json!({"metadata": {"name": "mine"}, "rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/mine", "", json!({"rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/mine", "application/json-patch+json", json!([{"op": "replace", "path": "/rules/0/resources/0", "value": "secrets"}]), role("mine")),
            ("PATCH /namespaces/a/roles/mine", "application/strategic-merge-patch+json", json!({"rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/mine?fieldManager=m&force=true", apply, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/new?fieldManager=m", apply, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "new"}, "rules": more}), role("new")),
            ("POST /clusterroles", "", json!({"metadata": {"name": "x"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}), refused("clusterroles.rbac.authorization.k8s.io \"x\"", r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#)),
            ("POST /clusterroles", "", json!({"metadata": {"name": "x"}, "rules": [], "aggregationRule": selectors}), "clusterroles.rbac.authorization.k8s.io \"x\" is forbidden: must have cluster-admin privileges to use the aggregationRule".to_owned()),
            ("POST /namespaces/a/rolebindings", "", bind("ClusterRole", "cluster-admin"), refused("rolebindings.rbac.authorization.k8s.io \"x\"", everything)),
            ("POST /namespaces/a/rolebindings", "", bind("Role", "none"), r#"roles.rbac.authorization.k8s.io "none" not found"#.to_owned()),
            ("POST /clusterrolebindings", "", bind("ClusterRole", "cluster-admin"), r#"clusterrolebindings.rbac.authorization.k8s.io is forbidden: User "bob" cannot create resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope"#.to_owned()),
            ("POST /namespaces/b/roles", "", json!({"metadata": {"name": "x"}}), r#"roles.rbac.authorization.k8s.io is forbidden: User "bob" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "b""#.to_owned()),
        ] {
            let (method, path) = what.split_once(' ').unwrap();
            let mut headers = bearer("bob");
            if !sort.is_empty() {
                headers.push(("content-type", sort.to_owned()));
            }
            let (code, text) = place.send(&headers, &format!("{method} {RBAC}{path}"), body).await;
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(answer["message"], expected, "{what}");
            assert!(matches!(code, 403 | 404), "{what}: {code}");
        }
        let (code, text) = place.by("ann", SECRET_A, Value::Null).await;
        assert_eq!(code, 403, "nothing came of it: {text}");
        let finalizer = json!({"metadata": {"finalizers": ["x.io/hold"]}});
        place.root(&format!("PATCH {RBAC}/namespaces/a/roles/mine"), json!({"rules": more})).await;
        let (code, text) = place.by("bob", &format!("PATCH {RBAC}/namespaces/a/roles/mine"), finalizer).await;
        assert_eq!(code, 200, "what the garbage collector changes grants nothing: {text}");
    });
    run.unwrap();
}

#[test]
fn impersonation_gives_no_more_than_it_says() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let may = |resource: &str, names: Value| json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": [resource], "resourceNames": names});
        place.grant_all("bob", json!([may("users", json!(["ann"]))])).await;
        for (attack, headers, code) in [
            ("an administrator", &[("impersonate-user", "root")][..], 403),
            ("the masters", &[("impersonate-user", "ann"), ("impersonate-group", "system:masters")], 403),
            ("a group alone", &[("impersonate-group", "system:masters")], 400),
            ("a uid alone", &[("impersonate-uid", "u-root")], 400),
            ("an extra alone", &[("impersonate-extra-scopes", "all")], 400),
            ("two users", &[("impersonate-user", "ann"), ("impersonate-user", "root")], 400),
            ("other letters", &[("Impersonate-USER", "root")], 403),
            ("a service account", &[("impersonate-user", "system:serviceaccount:a:bot")], 403),
            ("a node", &[("impersonate-user", "system:node:n1")], 403),
            ("a space", &[("impersonate-user", "root ")], 403),
            ("ann, who may not either", &[("impersonate-user", "ann")], 403),
        ] {
            let mut sent = bearer("bob");
            sent.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
            let (found, text) = place.send(&sent, SECRET_A, Value::Null).await;
            assert_eq!(found, code, "{attack}: {text}");
            assert!(!text.contains("dHJlYXN1cmU"), "{attack}");
        }
        // Who is nobody may be nobody else.
        let sent = [("impersonate-user", "root".to_owned())];
        assert_eq!(place.send(&sent, SECRET_A, Value::Null).await.0, 403);
    });
    run.unwrap();
}
