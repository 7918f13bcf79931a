//! Bearer tokens: a genuine one authenticates its account, and no forged or changed token authenticates
//! anyone.

use super::control_plane::{post, user_of, with_config};
use crate::{
    Target,
    recorded::{divide, seed},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use server::{Config, Server, SigningKey};

pub(super) const TARGET: Target = Target { name: "token", check, seeds, words: WORDS };

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

const WORDS: &[&str] = &[
    "\"alg\":\"none\"",
    "\"alg\":\"HS256\"",
    "\"alg\":\"ES256\"",
    "\"alg\":\"RS256\"",
    "\"kid\":",
    "\"jwk\":",
    "\"crit\":[",
    "\"iss\":\"https://kubernetes.default.svc\"",
    "\"sub\":\"system:serviceaccount:default:a\"",
    "\"aud\":[",
    "\"exp\":",
    "\"nbf\":",
    "\"iat\":",
    "\"kubernetes.io\":",
    "\"serviceaccount\":",
    "9223372036854775807",
    "-1",
    "1e400",
    "null",
    "Bearer ",
    "Basic ",
    ".",
    "..",
    "=",
];

fn seeds() -> Vec<Vec<u8>> {
    let claims = r#"{"iss":"https://kubernetes.default.svc","sub":"system:serviceaccount:default:a","aud":["https://kubernetes.default.svc"],"exp":9999999999,"nbf":0,"iat":0,"kubernetes.io":{"namespace":"default","serviceaccount":{"name":"a","uid":"u"}}}"#;
    let all = [
        (r#"{"alg":"none"}"#, claims, ""),
        (r#"{"alg":"ES256","kid":"x"}"#, claims, "signature"),
        (r#"{"alg":"HS256","typ":"JWT"}"#, claims, "\x01\x02"),
        (
            r#"{"alg":"RS256","jwk":{"kty":"EC"},"crit":["b64"],"b64":false}"#,
            r#"{"sub":"system:admin"}"#,
            "s",
        ),
        (r#"{"alg":"ES256"}"#, r#"{"aud":"x","exp":1e400}"#, ""),
    ];
    all.into_iter().map(|(head, claims, sign)| seed(b'7', &[head, claims, sign].map(str::as_bytes))).collect()
}

fn check(input: &[u8]) {
    let (signing_key, _) = SigningKey::make().unwrap();
    let config = Config { signing_key: Some(signing_key), ..Config::default() };
    with_config(config, |server| async move {
        let genuine = genuine(&server).await;
        let name = user_of(&server, format!("bearer {genuine}").as_bytes()).await;
        assert_eq!(name, Some(Ok("system:serviceaccount:default:a".to_owned())));
        for token in forgeries(input, &genuine).into_iter().filter(|token| *token != genuine) {
            let named = user_of(&server, format!("Bearer {token}").as_bytes()).await;
            assert!(!matches!(named, Some(Ok(_))), "{token} is {named:?}, {genuine} is good");
            let review = post(&server, REVIEWS, &json!({"spec": {"token": token}})).await.json();
            assert_ne!(review["status"]["authenticated"], true, "{token}");
        }
        // What is no token authenticates no user.
        for header in [input.to_vec(), [b"Bearer ", input].concat(), [b"Basic ", input].concat()] {
            let named = user_of(&server, &header).await;
            assert!(!matches!(named, Some(Ok(_))), "{} is {named:?}", header.escape_ascii());
        }
    });
}

async fn genuine(server: &Server) -> String {
    let account = json!({"metadata": {"name": "a"}});
    assert_eq!(post(server, ACCOUNTS, &account).await.code, 201);
    let asked = post(server, &format!("{ACCOUNTS}/a/token"), &json!({"spec": {}})).await.json();
    asked["status"]["token"].as_str().unwrap().to_owned()
}

/// Tokens that the server has not signed: made of the input, of both, or with one character changed.
fn forgeries(input: &[u8], genuine: &str) -> Vec<String> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=";
    let Some((first, rest)) = input.split_first() else { return Vec::new() };
    let (head, rest) = divide(rest).unwrap_or((rest, b""));
    let (claims, signature) = divide(rest).unwrap_or((rest, b""));
    let [head, claims, signature] = [head, claims, signature].map(|part| URL_SAFE_NO_PAD.encode(part));
    let parts: Vec<_> = genuine.split('.').collect();
    let mut changed = genuine.as_bytes().to_vec();
    let place = input.iter().map(|byte| usize::from(*byte)).sum::<usize>() % changed.len();
    changed[place] = ALPHABET[usize::from(*first) % ALPHABET.len()];
    let mut last = genuine.as_bytes().to_vec();
    *last.last_mut().unwrap() = ALPHABET[usize::from(*first) % ALPHABET.len()];
    vec![
        format!("{head}.{claims}.{signature}"),
        format!("{head}.{claims}.{}", parts[2]),
        format!("{head}.{}.{}", parts[1], parts[2]),
        format!("{}.{claims}.{}", parts[0], parts[2]),
        format!("{}.{}.{signature}", parts[0], parts[1]),
        format!("{genuine}.{signature}"),
        String::from_utf8(changed).unwrap(),
        String::from_utf8(last).unwrap(),
    ]
}
