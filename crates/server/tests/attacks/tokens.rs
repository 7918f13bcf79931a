//! Tokens that were tampered with, stolen or expired: they authenticate no user.

use super::{SECRET_A, SELF_REVIEW, bearer};
use crate::access::place;
use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use server::SigningKey;
use std::time::Duration;

/// Signs anything with the key of a PEM text.
struct Forger(EcdsaKeyPair);

impl Forger {
    fn new(pem: &str) -> Forger {
        let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(text).unwrap();
        Forger(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).unwrap())
    }

    /// The public key.
    fn jwk(&self) -> Value {
        let point = &self.0.public_key().as_ref()[1..];
        let (x, y) = point.split_at(32);
        json!({"kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
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

/// The claims of a token in a Secret.
fn legacy(uid: &Value, secret: &str) -> String {
    let prefix = "kubernetes.io/serviceaccount";
    json!({
        "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:a:bot", (format!("{prefix}/namespace")): "a",
        (format!("{prefix}/secret.name")): secret, (format!("{prefix}/service-account.name")): "bot",
        (format!("{prefix}/service-account.uid")): uid,
    })
    .to_string()
}

/// Claims that no valid token has.
const CLAIMS: [(&str, &str, &str); 11] = [
    ("expired long ago", "exp", r#"1"#),
    ("expires in text", "exp", r#""9999999999""#),
    ("no audience of ours among many", "aud", r#"["a","b","c"]"#),
    ("an audience that begins alike", "aud", r#"["https://kubernetes.default"]"#),
    ("an issuer that begins alike", "iss", r#""https://kubernetes.default.svc/""#),
    ("another subject than account", "sub", r#""system:serviceaccount:b:bot""#),
    ("the administrator as subject", "sub", r#""root""#),
    ("another issuer", "iss", r#""https://evil""#),
    ("another audience", "aud", r#"["vault"]"#),
    ("never expires", "exp", r#"null"#),
    ("bound to no account", "kubernetes.io", r#"{}"#),
];

/// Headers that no valid token has.
const HEADERS: [(&str, &str); 11] = [
    ("a critical extension", r#"{"alg":"ES256","crit":["exp"]}"#),
    ("another algorithm", r#"{"alg":"RS256"}"#),
    ("two algorithms", r#"{"alg":"ES256","alg":"none"}"#),
    ("another key's name", r#"{"alg":"ES256","kid":"other"}"#),
    ("a key's name that is a path", r#"{"alg":"ES256","kid":"../../../dev/null"}"#),
    ("a key's name that is no text", r#"{"alg":"ES256","kid":["x"]}"#),
    ("no algorithm", r#"{}"#),
    ("an algorithm of the family", r#"{"alg":"ES384"}"#),
    ("an algorithm in other letters", r#"{"alg":"es256"}"#),
    ("a body that is not encoded", r#"{"alg":"ES256","b64":false,"crit":["b64"]}"#),
    ("nothing that is critical", r#"{"alg":"ES256","crit":[]}"#),
];

#[test]
fn tampered_tokens_are_rejected() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let good = place.token("a", json!({})).await;
        assert_eq!(place.send(&bearer(&good), SELF_REVIEW, json!({})).await.0, 201);
        let (header, claims, signature) = parts(&good);
        let ours = Forger::new(&place.key);
        let theirs = Forger::new(&SigningKey::make().unwrap().1);
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let with = |member: &str, value: Value| {
            let mut claims: Value = serde_json::from_str(&claims).unwrap();
            claims[member] = value;
            claims.to_string()
        };
        let uid =
            serde_json::from_str::<Value>(&claims).unwrap()["kubernetes.io"]["serviceaccount"]["uid"].clone();
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
            (
                "a key of their own in the header",
                theirs.sign(&format!(r#"{{"alg":"ES256","jwk":{}}}"#, theirs.jwk()), &claims),
            ),
            (
                "a key of their own in the header, under our name",
                theirs.sign(
                    &format!(r#"{{"alg":"ES256","kid":{},"jwk":{}}}"#, keys["keys"][0]["kid"], theirs.jwk()),
                    &claims,
                ),
            ),
            ("a chain in the header", theirs.sign(r#"{"alg":"ES256","x5c":["MIIB"]}"#, &claims)),
            (
                "a signature of zeros",
                format!("{}.{}.{}", encode(&header), encode(&claims), URL_SAFE_NO_PAD.encode([0; 64])),
            ),
            ("half a signature", format!("{}.{}.{}", encode(&header), encode(&claims), &signature[..43])),
            ("a signature and more", format!("{good}AAAA")),
            ("a fourth part", format!("{good}.x")),
            ("a signature with padding", format!("{good}==")),
            ("a line break inside", good.replacen('.', ".%0a", 1)),
            ("expires after all time", ours.sign(&header, &with("exp", 1e300.into()))),
            ("an old token without its secret", ours.sign(&header, &legacy(&uid, ""))),
            ("an old token of no such secret", ours.sign(&header, &legacy(&uid, "hidden"))),
            ("two subjects", ours.sign(&header, &claims.replacen('{', r#"{"sub":"root","#, 1))),
            ("not valid yet", ours.sign(&header, &with("nbf", future.into()))),
            ("from the future", ours.sign(&header, &with("iat", future.into()))),
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
            let (code, text) = place.send(&bearer(&token), SELF_REVIEW, json!({})).await;
            assert_eq!(code, 401, "{attack}: {text}");
            assert!(!text.contains(&token) && text.len() < 500, "{attack} is echoed");
        }
        for (attack, member, value) in CLAIMS {
            let token = ours.sign(&header, &with(member, serde_json::from_str(value).unwrap()));
            let (code, text) = place.send(&bearer(&token), SELF_REVIEW, json!({})).await;
            assert_eq!(code, 401, "{attack}: {text}");
        }
        for (attack, header) in HEADERS {
            let (code, text) = place.send(&bearer(&ours.sign(header, &claims)), SELF_REVIEW, json!({})).await;
            assert_eq!(code, 401, "{attack}: {text}");
        }
    });
    run.unwrap();
}

#[test]
fn tokens_are_invalid_once_their_objects_are_deleted() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let ask = async |token: &str| place.send(&bearer(token), SELF_REVIEW, json!({})).await.0;
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
fn tokens_are_valid_only_for_their_account_and_audience() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
        place.grant("a", "system:serviceaccount:a:bot", rules).await;
        let (of_a, of_b) = (place.token("a", json!({})).await, place.token("b", json!({})).await);
        let for_vault = place.token("a", json!({"audiences": ["vault"]})).await;
        let for_both =
            place.token("a", json!({"audiences": ["vault", "https://kubernetes.default.svc"]})).await;
        assert_eq!(place.send(&bearer(&of_a), SECRET_A, Value::Null).await.0, 200);
        assert_eq!(place.send(&bearer(&for_both), SECRET_A, Value::Null).await.0, 200);
        let secret_b = "GET /api/v1/namespaces/b/secrets/hidden";
        let token_of_b = "POST /api/v1/namespaces/b/serviceaccounts/bot/token";
        let token_of_a = "POST /api/v1/namespaces/a/serviceaccounts/bot/token";
        let review = "POST /apis/authentication.k8s.io/v1/tokenreviews";
        for (attack, token, what, code) in [
            ("another audience", &for_vault, SECRET_A, 401),
            ("an account of the same name", &of_b, SECRET_A, 403),
            ("another namespace's secret", &of_a, secret_b, 403),
            ("a token for itself", &of_a, token_of_a, 403),
            ("a token for another", &of_a, token_of_b, 403),
            ("what a token of others says", &of_a, review, 403),
        ] {
            let (found, text) = place.send(&bearer(token), what, json!({})).await;
            assert_eq!(found, code, "{attack}: {text}");
        }
        for (attack, token, audiences) in [
            ("a static token for others", "root", json!(["vault"])),
            ("ours for others", of_a.as_str(), json!(["vault"])),
            (
                "a token for another audience, ours requested",
                for_vault.as_str(),
                json!(["https://kubernetes.default.svc"]),
            ),
            ("a token for another audience, no audience requested", for_vault.as_str(), json!([])),
            (
                "a token for another audience, similar ones requested",
                for_vault.as_str(),
                json!(["vault/", "Vault", "vaul"]),
            ),
        ] {
            let spec = json!({"token": token, "audiences": audiences});
            let status = &place.root(review, json!({"spec": spec})).await["status"];
            assert_ne!(status["authenticated"], true, "{attack}: {status}");
            assert_eq!(status["user"], json!({}), "{attack}: {status}");
        }
        // A token is bound to a pod or secret in its own namespace.
        let reference = json!({"kind": "Secret", "apiVersion": "v1", "name": "hidden"});
        let bound = place.token("a", json!({"boundObjectRef": reference})).await;
        place.root("DELETE /api/v1/namespaces/b/secrets/hidden", Value::Null).await;
        assert_eq!(place.send(&bearer(&bound), SELF_REVIEW, json!({})).await.0, 201);
        place.root("DELETE /api/v1/namespaces/a/secrets/hidden", Value::Null).await;
        place.root("POST /api/v1/namespaces/a/secrets", json!({"metadata": {"name": "hidden"}})).await;
        assert_eq!(
            place.send(&bearer(&bound), SELF_REVIEW, json!({})).await.0,
            401,
            "another secret has its name"
        );
    });
    run.unwrap();
}

#[test]
fn a_token_in_a_secret_is_valid_only_while_the_secret_holds_it() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let ours = Forger::new(&place.key);
        let secrets = "/api/v1/namespaces/a/secrets";
        let account = place.root("GET /api/v1/namespaces/a/serviceaccounts/bot", Value::Null).await;
        let prefix = "kubernetes.io/serviceaccount";
        let claims = |secret: &str, account_name: &str, uid: &Value| {
            json!({
                "iss": "kubernetes/serviceaccount", "sub": format!("system:serviceaccount:a:{account_name}"),
                (format!("{prefix}/namespace")): "a", (format!("{prefix}/secret.name")): secret,
                (format!("{prefix}/service-account.name")): account_name,
                (format!("{prefix}/service-account.uid")): uid,
            })
            .to_string()
        };
        let uid = &account["metadata"]["uid"];
        let token = ours.sign(r#"{"alg":"ES256"}"#, &claims("kept", "bot", uid));
        let secret = json!({
            "metadata": {"name": "kept", "annotations": {"kubernetes.io/service-account.name": "bot"}},
            "type": "kubernetes.io/service-account-token", "data": {"token": STANDARD.encode(&token)},
        });
        let ask = async |token: &str| place.send(&bearer(token), SELF_REVIEW, json!({})).await;
        assert_eq!(ask(&token).await.0, 401, "it lies nowhere");
        place.root(&format!("POST {secrets}"), secret).await;
        let (code, text) = ask(&token).await;
        assert_eq!(code, 201, "{text}");
        let who: Value = serde_json::from_str(&text).unwrap();
        let user = &who["status"]["userInfo"];
        assert_eq!((&user["username"], &user["uid"]), (&json!("system:serviceaccount:a:bot"), uid), "{who}");
        let review = "POST /apis/authentication.k8s.io/v1/tokenreviews";
        let checked = place.root(review, json!({"spec": {"token": token, "audiences": ["vault"]}})).await;
        assert_ne!(checked["status"]["authenticated"], true, "{checked}");
        let theirs = Forger::new(&SigningKey::make().unwrap().1);
        for (attack, token) in [
            ("signed by another", theirs.sign(r#"{"alg":"ES256"}"#, &claims("kept", "bot", uid))),
            ("the same, signed again", ours.sign(r#"{"alg":"ES256"}"#, &claims("kept", "bot", uid))),
            ("another secret", ours.sign(r#"{"alg":"ES256"}"#, &claims("hidden", "bot", uid))),
            ("another account", ours.sign(r#"{"alg":"ES256"}"#, &claims("kept", "default", uid))),
            ("another uid", ours.sign(r#"{"alg":"ES256"}"#, &claims("kept", "bot", &json!("x")))),
        ] {
            assert_eq!(ask(&token).await.0, 401, "{attack}");
        }
        let label =
            json!({"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}}});
        place.root(&format!("PATCH {secrets}/kept"), label).await;
        assert_eq!(ask(&token).await.0, 401, "it was marked as invalid");
        let label = json!({"metadata": {"labels": null}});
        place.root(&format!("PATCH {secrets}/kept"), label).await;
        assert_eq!(ask(&token).await.0, 201, "and is not any more");
        place.root("DELETE /api/v1/namespaces/a/serviceaccounts/bot", Value::Null).await;
        assert_eq!(ask(&token).await.0, 401, "its account is gone");
    });
    run.unwrap();
}
