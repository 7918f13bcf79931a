//! Service account keys: tokens that other programs have signed.

use super::{client, file, run, start, user};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, ResourceExt, api::PostParams};
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};

const ISSUER: &str = "https://clusters.example";

/// A token with ES256.
fn signed(key: &KeyPair, claims: &Value) -> String {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let text = format!("{}.{}", encode(br#"{"alg":"ES256"}"#), encode(claims.to_string().as_bytes()));
    format!("{text}.{}", encode(&fixed_length(&key.sign(text.as_bytes()).unwrap())))
}

/// The two numbers of a signature in ASN.1, each in 32 bytes.
fn fixed_length(signature: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    // After the head of the sequence; each number has a tag and a length in front.
    let mut rest = &signature[2..];
    for _ in 0..2 {
        let (number, others) = rest[2..].split_at(usize::from(rest[1]));
        let number = &number[number.len().saturating_sub(32)..];
        numbers.extend(vec![0; 32 - number.len()]);
        numbers.extend(number);
        rest = others;
    }
    numbers
}

#[test]
fn tokens_of_any_of_several_keys_are_accepted() {
    let scratch = tempfile::tempdir().unwrap();
    let [own, one, two, three, other] = [(); 5].map(|()| KeyPair::generate().unwrap());
    let secret = file(scratch.path(), "own.key", &own.serialize_pem());
    let public = file(scratch.path(), "one.pub", &one.public_key_pem());
    let several =
        file(scratch.path(), "more.pub", &format!("{}{}", two.public_key_pem(), three.public_key_pem()));
    let tokens = file(scratch.path(), "tokens.csv", "secret,bob,1,\"system:masters\"\n");
    let server = start(
        scratch.path(),
        &[
            &format!("--token-auth-file={}", tokens.display()),
            &format!("--service-account-signing-key-file={}", secret.display()),
            &format!("--service-account-key-file={}", public.display()),
            &format!("--service-account-key-file={}", several.display()),
            &format!("--service-account-issuer={ISSUER}"),
        ],
    );
    run(async {
        let admin = client(&server, None, Some("secret"));
        let accounts: Api<ServiceAccount> = Api::namespaced(admin, "default");
        let account = serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap();
        let account = accounts.create(&PostParams::default(), &account).await.unwrap();
        let answer =
            accounts.create_token_request("robot", &PostParams::default(), &Default::default()).await;
        let own_token = answer.unwrap().status.unwrap().token.unwrap();
        let now = world::World::real().wall().as_second();
        let claims = json!({
            "iss": ISSUER, "aud": [ISSUER], "sub": "system:serviceaccount:default:robot",
            "iat": now, "nbf": now, "exp": now + 3600,
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": account.uid()}},
        });
        let robot = Ok("system:serviceaccount:default:robot".to_owned());
        assert_eq!(user(client(&server, None, Some(&own_token))).await, robot);
        for (name, key, expected) in [
            ("one", &one, robot.clone()),
            ("two", &two, robot.clone()),
            ("three", &three, robot.clone()),
            ("another", &other, Err("401".to_owned())),
        ] {
            assert_eq!(user(client(&server, None, Some(&signed(key, &claims)))).await, expected, "{name}");
        }
    });
}
