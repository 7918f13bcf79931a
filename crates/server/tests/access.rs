//! Authentication and authorization over the API: tokens, reviews, impersonation and grants.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Config, Server, SigningKey, TokenFile};
use std::sync::Arc;
use world::World;

const TOKENS: &str = "\
root,root,u-root,system:masters
ann,ann,u-ann,devs
bob,bob,u-bob
";

/// A control plane with two namespaces and the key that signs its tokens.
pub(crate) struct Place {
    pub(crate) world: World,
    pub(crate) server: Server,
    /// The PEM of the private key.
    pub(crate) key: String,
}

pub(crate) async fn place(world: World) -> Place {
    place_with(world, Config::default()).await
}

pub(crate) async fn place_with(world: World, config: Config) -> Place {
    let (signing_key, key) = SigningKey::make().unwrap();
    let tokens = TokenFile::parse(TOKENS).unwrap();
    let config = Config { tokens, signing_key: Some(signing_key), ..config };
    let store = Arc::new(store::Memory::new());
    let server = Server::start(&world, store, config).await.unwrap();
    let place = Place { world, server, key };
    for name in ["a", "b"] {
        place.root("POST /api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        let bot = json!({"metadata": {"name": "bot"}});
        place.root(&format!("POST /api/v1/namespaces/{name}/serviceaccounts"), bot).await;
        let secret = json!({"metadata": {"name": "hidden"}, "stringData": {"k": "treasure"}});
        place.root(&format!("POST /api/v1/namespaces/{name}/secrets"), secret).await;
    }
    place
}

impl Place {
    /// Status code and body of `METHOD path`, with exactly these headers.
    pub(crate) async fn send(&self, headers: &[(&str, String)], what: &str, body: Value) -> (u16, String) {
        let (method, path) = what.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let response = self.server.handle(request.body(Full::new(body)).unwrap()).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) async fn by(&self, token: &str, what: &str, body: Value) -> (u16, Value) {
        let (code, text) = self.send(&[("authorization", format!("Bearer {token}"))], what, body).await;
        (code, serde_json::from_str(&text).unwrap_or_default())
    }

    pub(crate) async fn root(&self, what: &str, body: Value) -> Value {
        let (code, answer) = self.by("root", what, body).await;
        assert!(code < 300, "{what}: {answer}");
        answer
    }

    /// A role in a namespace and its binding to a user.
    pub(crate) async fn grant(&self, namespace: &str, user: &str, rules: Value) {
        let base = format!("POST /apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        let role = json!({"metadata": {"generateName": "r-"}, "rules": rules});
        let role = self.root(&format!("{base}/roles"), role).await;
        let binding = json!({
            "metadata": {"generateName": "b-"}, "roleRef": {"kind": "Role", "name": role["metadata"]["name"]},
            "subjects": [{"kind": "User", "name": user}],
        });
        self.root(&format!("{base}/rolebindings"), binding).await;
    }

    pub(crate) async fn grant_all(&self, user: &str, rules: Value) {
        let base = "POST /apis/rbac.authorization.k8s.io/v1";
        let role = json!({"metadata": {"generateName": "r-"}, "rules": rules});
        let role = self.root(&format!("{base}/clusterroles"), role).await;
        let binding = json!({
            "metadata": {"generateName": "b-"}, "roleRef": {"kind": "ClusterRole", "name": role["metadata"]["name"]},
            "subjects": [{"kind": "User", "name": user}],
        });
        self.root(&format!("{base}/clusterrolebindings"), binding).await;
    }

    pub(crate) async fn token(&self, namespace: &str, spec: Value) -> String {
        let what = format!("POST /api/v1/namespaces/{namespace}/serviceaccounts/bot/token");
        let made = self.root(&what, json!({"spec": spec})).await;
        made["status"]["token"].as_str().unwrap().to_owned()
    }
}

const SELF_REVIEW: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKEN: &str = "POST /api/v1/namespaces/a/serviceaccounts/bot/token";

#[test]
fn tokens_are_valid_only_while_their_bound_objects_exist() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"serviceAccountName": "bot", "nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        });
        place.root("POST /api/v1/namespaces/a/pods", pod).await;
        let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
        let token = place.token("a", json!({"boundObjectRef": reference, "expirationSeconds": 3607})).await;
        let (code, who) = place.by(&token, SELF_REVIEW, json!({})).await;
        let user = &who["status"]["userInfo"];
        assert_eq!((code, &user["username"]), (201, &json!("system:serviceaccount:a:bot")), "{who}");
        assert_eq!(user["extra"]["authentication.kubernetes.io/pod-name"], json!(["p"]));
        assert_eq!(user["extra"]["authentication.kubernetes.io/node-name"], json!(["n1"]));
        let id = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
        assert!(id.starts_with("JTI="), "{id}");
        // Requested for a pod: it lives far longer than requested.
        place.world.sleep(std::time::Duration::from_secs(7200)).await;
        assert_eq!(place.by(&token, SELF_REVIEW, json!({})).await.0, 201);
        place.root("DELETE /api/v1/namespaces/a/pods/p?gracePeriodSeconds=0", Value::Null).await;
        assert_eq!(place.by(&token, SELF_REVIEW, json!({})).await.0, 401, "the pod is gone");
        for (spec, code, message) in [
            (
                json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}}),
                404,
                r#"pods "q" not found"#,
            ),
            (
                json!({"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1"}}),
                400,
                "cannot bind token to object of type batch/v1, Kind=Job",
            ),
            (
                json!({"expirationSeconds": 10}),
                422,
                r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes"#,
            ),
            (
                json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "hidden", "uid": "x"}}),
                409,
                r#"Operation cannot be fulfilled on Secret "hidden": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated"#,
            ),
        ] {
            let (found, answer) = place.by("root", TOKEN, json!({"spec": spec})).await;
            assert_eq!((found, answer["message"].as_str().unwrap()), (code, message), "{spec}");
        }
    });
    run.unwrap();
}

#[test]
fn token_reviews_and_published_keys_verify_tokens() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let token = place.token("a", json!({"audiences": ["vault"]})).await;
        assert_eq!(place.by(&token, SELF_REVIEW, json!({})).await.0, 401, "it is for another audience");
        let review = "POST /apis/authentication.k8s.io/v1/tokenreviews";
        for (audiences, expected) in [
            (json!(["vault", "x"]), json!({"authenticated": true, "audiences": ["vault"]})),
            (
                json!(["x"]),
                json!({"error": r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["x"]]"#}),
            ),
            (
                json!([]),
                json!({"error": r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc"]]"#}),
            ),
        ] {
            let answer = place.root(review, json!({"spec": {"token": token, "audiences": audiences}})).await;
            let mut status = answer["status"].clone();
            status.as_object_mut().unwrap().remove("user");
            assert_eq!(status, expected, "{answer}");
        }
        let token = place.token("a", json!({})).await;
        let (_, found) = place.by(&token, "GET /.well-known/openid-configuration", Value::Null).await;
        assert_eq!(found["issuer"], "https://kubernetes.default.svc");
        let (_, keys) = place.by(&token, "GET /openid/v1/jwks", Value::Null).await;
        assert_eq!(
            (&keys["keys"][0]["kty"], &keys["keys"][0]["alg"]),
            (&json!("EC"), &json!("ES256")),
            "{keys}"
        );
        assert_eq!(
            place.send(&[], "GET /openid/v1/jwks", Value::Null).await.0,
            403,
            "not everybody is shown them"
        );
    });
    run.unwrap();
}

#[test]
fn impersonation_needs_rights_to_user_groups_uid_and_extra() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let rule = |group: &str, resource: &str, names: Value| json!({"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource], "resourceNames": names});
        place
            .grant_all(
                "bob",
                json!([
                    rule("", "users", json!(["ann"])),
                    rule("", "groups", json!(["devs"])),
                    rule("authentication.k8s.io", "userextras/scopes", json!(["view"])),
                ]),
            )
            .await;
        let constrained = json!([
            {"verbs": ["impersonate:serviceaccount"], "apiGroups": ["authentication.k8s.io"], "resources": ["serviceaccounts"]},
            {"verbs": ["impersonate-on:serviceaccount:create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
        ]);
        place.grant_all("ann", constrained).await;
        let who = |resource: &str, name: &str, place: &str| {
            let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
            let (shown, dot) = (resource.split('/').next().unwrap(), if group.is_empty() { "" } else { "." });
            format!(
                r#"{shown}{dot}{group} "{name}" is forbidden: User "bob" cannot impersonate resource "{resource}" in API group "{group}" {place}"#
            )
        };
        let cluster = "at the cluster scope";
        let on = |verb: &str| {
            format!(
                r#"selfsubjectreviews.authentication.k8s.io is forbidden: User "bob" cannot {verb} resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope"#
            )
        };
        for (token, headers, expected) in [
            ("bob", &[("user", "carl")][..], Err(on("impersonate-on:user-info:create"))),
            ("bob", &[("user", "ann")], Ok("ann system:authenticated")),
            ("bob", &[("user", "ann"), ("group", "devs")], Ok("ann devs,system:authenticated")),
            ("bob", &[("user", "ann"), ("extra-scopes", "view")], Ok("ann system:authenticated")),
            // A caller once allowed in legacy mode gets the legacy mode's rejection.
            ("bob", &[("user", "ann"), ("group", "ops")], Err(who("groups", "ops", cluster))),
            ("bob", &[("user", "ann"), ("uid", "1")], Err(who("uids.authentication.k8s.io", "1", cluster))),
            ("bob", &[("user", "ann"), ("extra-scopes", "edit")], Err(who("userextras/scopes.authentication.k8s.io", "edit", cluster))),
            ("bob", &[("user", "system:node:n1")], Err(who("users", "system:node:n1", cluster))),
            ("bob", &[("user", "system:serviceaccount:a:bot")], Err(who("serviceaccounts", "bot", "in the namespace \"a\""))),
            ("ann", &[("user", "system:serviceaccount:a:bot")], Ok("system:serviceaccount:a:bot system:serviceaccounts,system:serviceaccounts:a,system:authenticated")),
            ("root", &[("user", "system:anonymous")], Err(r#"selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope"#.to_owned())),
            ("root", &[("user", "x"), ("group", "system:masters")], Ok("x system:masters,system:authenticated")),
            ("root", &[("group", "devs")], Err(r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without impersonating a user name"#.to_owned())),
        ] {
            let mut sent = vec![("authorization", format!("Bearer {token}"))];
            let names: Vec<_> = headers.iter().map(|(name, value)| (format!("impersonate-{name}"), value)).collect();
            sent.extend(names.iter().map(|(name, value)| (name.as_str(), (**value).to_owned())));
            let (_, text) = place.send(&sent, SELF_REVIEW, json!({})).await;
            let answer: Value = serde_json::from_str(&text).unwrap();
            let user = &answer["status"]["userInfo"];
            let groups = user["groups"].as_array().into_iter().flatten().map(|it| it.as_str().unwrap());
            let groups = groups.collect::<Vec<_>>().join(",");
            let found = match user["username"].as_str() {
                Some(name) => Ok(format!("{name} {groups}")),
                None => Err(answer["message"].as_str().unwrap().to_owned()),
            };
            assert_eq!(found, expected.map(str::to_owned), "{token} {headers:?}");
        }
    });
    run.unwrap();
}

#[test]
fn rules_reviews_list_the_callers_rules() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        place.grant("a", "ann", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])).await;
        let what = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let (code, answer) = place.by("ann", what, json!({"spec": {"namespace": "a"}})).await;
        assert_eq!((code, &answer["spec"]), (201, &json!({})), "{answer}");
        let rules = answer["status"]["resourceRules"].as_array().unwrap();
        assert!(
            rules.contains(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})),
            "{answer}"
        );
        let (code, answer) = place.by("ann", what, json!({"spec": {}})).await;
        assert_eq!((code, &answer["message"]), (400, &json!("no namespace on request")));
        let review = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";
        let node = json!({
            "user": "system:node:n1", "groups": ["system:nodes"],
            "resourceAttributes": {"verb": "list", "resource": "pods", "fieldSelector": {"requirements": [
                {"key": "spec.nodeName", "operator": "In", "values": ["n1"]},
                {"key": "x", "operator": "Exists"},
            ]}},
        });
        let answer = place.root(review, json!({"spec": node})).await;
        let problem = "spec.resourceAttributes.fieldSelector partially ignored due to parse error";
        assert_eq!(answer["status"], json!({"allowed": true, "evaluationError": problem}), "{answer}");
    });
    run.unwrap();
}

#[test]
fn methods_need_the_verbs_of_kubernetes() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let refusal =
            r#"User \"ann\" cannot  resource \"configmaps\" in API group \"\" in the namespace \"a\""#;
        for (token, what, code, part) in [
            ("ann", "OPTIONS /api/v1/namespaces/a/configmaps", 403, refusal),
            ("root", "OPTIONS /api/v1/namespaces/a/configmaps", 405, "does not allow this method"),
            ("root", "OPTIONS /api/v1/nope", 404, "could not find the requested resource"),
            ("root", "HEAD /api/v1/namespaces/a/configmaps", 405, ""),
            ("root", "HEAD /version", 405, ""),
            ("root", "POST /version", 405, ""),
            ("root", "POST /apis/apps/v1", 405, ""),
            ("root", "POST /healthz", 200, "ok"),
            ("root", "POST /nope", 404, "404 page not found"),
            ("root", "GET /apis/authorization.k8s.io/v1/subjectaccessreviews/x", 404, "could not find"),
            ("root", "GET /apis/authorization.k8s.io/v1/subjectaccessreviews", 405, ""),
        ] {
            let authorization = ("authorization", format!("Bearer {token}"));
            let (found, text) = place.send(&[authorization], what, Value::Null).await;
            assert!(found == code && text.contains(part), "{what}: {found} {text}");
        }
    });
    run.unwrap();
}
