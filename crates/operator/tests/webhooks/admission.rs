//! Validators and defaulters have their say.

use super::{Bucket, BucketSpec, URL, handle_webhooks};
use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale};
use kube::{
    Api, CustomResource, CustomResourceExt, Resource,
    api::{Patch, PatchParams, PostParams},
};
use operator::webhook::{
    Address, Certificates, Change, Hook, Operation, Request, Review, Site, Verdict, Webhooks,
    field::{self, ErrorList, Path},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use testkit::Cluster;

fn site() -> Site {
    let certificates = Certificates::Shared { namespace: "default".to_owned(), secret: "hooks".to_owned() };
    Site { address: Address::Url(URL.to_owned()), certificates }
}

/// A cluster that knows buckets and asks these webhooks about them.
async fn prepare(cluster: &Cluster, webhooks: Webhooks) -> world::Task<()> {
    cluster.apply_object(&serde_json::to_value(Bucket::crd()).unwrap()).await;
    let webhooks = Arc::new(webhooks);
    handle_webhooks(cluster, &webhooks);
    let (world, client) = (cluster.world().clone(), cluster.client());
    let keeping = cluster.world().spawn("webhooks", async move {
        webhooks.keep_registered(&world, client, site()).await.unwrap();
    });
    cluster.settle().await;
    keeping
}

fn bucket(name: &str, size: Option<u32>) -> Bucket {
    let mut bucket = Bucket::new(name, BucketSpec { size });
    bucket.metadata.namespace = Some("default".to_owned());
    bucket
}

async fn validate(review: Review<Bucket>) -> Verdict {
    let mut errors = ErrorList::default();
    let path = Path::new("spec");
    match &review.change {
        Change::Delete(bucket) if bucket.metadata.labels.is_some() => {
            return Verdict::deny("labelled buckets stay");
        }
        Change::Update { old, new } if old.spec.size > new.spec.size => {
            errors.push(field::Error::invalid(
                &path.child("size"),
                i64::from(new.spec.size.unwrap_or_default()),
                "must not shrink",
            ));
        }
        Change::Create(new) if new.spec.size == Some(0) => {
            return Verdict::allow().warn("an empty bucket is of little use");
        }
        Change::Create(new) if new.spec.size == Some(13) => panic!("unlucky"),
        Change::Create(new) if new.spec.size == Some(14) => std::future::pending().await,
        _ => {}
    }
    assert!(!review.request.user_info.username.unwrap().is_empty());
    Verdict::fields(errors)
}

fn webhooks() -> Webhooks {
    let fill_in = |bucket: &mut Bucket, request: &Request| {
        assert!(matches!(request.operation, Operation::Create | Operation::Update));
        bucket.spec.size.get_or_insert(5);
    };
    let all = [Operation::Create, Operation::Update, Operation::Delete];
    Webhooks::new("buckets")
        .hook(Hook::defaulter(fill_in))
        .hook(Hook::validator(validate).on(&all).within(Duration::from_secs(3)))
}

fn told<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        error => panic!("{error}"),
    }
}

#[test]
fn validators_and_defaulters_are_called() {
    testkit::run(|cluster| async move {
        let _keeping = prepare(&cluster, webhooks()).await;
        assert_eq!(cluster.create(&bucket("a", None)).await.spec.size, Some(5));
        assert_eq!(cluster.create(&bucket("b", Some(7))).await.spec.size, Some(7));
        let patch = |patch: Value| {
            let cluster = cluster.clone();
            async move { cluster.try_patch::<Bucket>("default", "b", &patch).await }
        };
        let denied = "admission webhook \"validate.buckets.example.com\" denied the request: ";
        assert_eq!(
            told(patch(json!({"spec": {"size": 6}})).await),
            (
                422,
                format!(
                    "{denied}Bucket.example.com \"b\" is invalid: spec.size: Invalid value: 6: must not shrink"
                )
            )
        );
        patch(json!({"spec": {"size": 8}, "metadata": {"labels": {"keep": "yes"}}})).await.unwrap();
        let refused = cluster.try_delete::<Bucket>("default", "b").await;
        assert_eq!(told(refused), (403, format!("{denied}labelled buckets stay")));
        cluster.delete::<Bucket>("default", "a").await;
    });
}

#[test]
fn failing_webhooks_are_reported_to_the_user() {
    testkit::simulate(1, |cluster| async move {
        let _keeping = prepare(&cluster, webhooks()).await;
        let (code, message) = told(cluster.try_create(&bucket("a", Some(13))).await);
        assert_eq!(code, 500);
        assert!(message.contains("the webhook panicked"), "{message}");
        let begun = cluster.world().now();
        let (code, message) = told(cluster.try_create(&bucket("a", Some(14))).await);
        assert_eq!((code, cluster.world().now().since(begun)), (500, Duration::from_secs(3)));
        assert!(message.contains("failed calling webhook"), "{message}");
        cluster.create(&bucket("a", Some(0))).await;
    });
}

/// Its type requires `colour` and `size`; so does its schema.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Paint", namespaced)]
pub(crate) struct PaintSpec {
    colour: String,
    size: u32,
}

fn paint(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Paint",
        "metadata": {"name": "wall", "namespace": "default"}, "spec": spec})
}

/// Creates the object without its Rust type, which it may not fit.
async fn create_paint(cluster: &Cluster, spec: Value) -> kube::Result<Value> {
    let body = serde_json::to_vec(&paint(spec)).unwrap();
    let request = kube::core::Request::new(Paint::url_path(&(), Some("default")));
    cluster.client().request(request.create(&PostParams::default(), body).unwrap()).await
}

#[test]
fn a_json_defaulter_fills_a_required_field() {
    testkit::run(|cluster| async move {
        cluster.apply_object(&serde_json::to_value(Paint::crd()).unwrap()).await;
        let hook = Hook::json_defaulter::<Paint, _>(|paint, request| {
            assert_eq!(request.operation, Operation::Create);
            if paint["spec"]["colour"].is_null() {
                paint["spec"]["colour"] = json!("white");
            }
        });
        let _keeping = prepare(&cluster, Webhooks::new("paints").hook(hook)).await;
        let created = create_paint(&cluster, json!({"size": 3})).await.unwrap();
        assert_eq!(created["spec"], json!({"colour": "white", "size": 3}));
    });
}

#[test]
fn the_schema_and_not_the_defaulter_refuses_an_object_that_does_not_fit_its_type() {
    testkit::run(|cluster| async move {
        cluster.apply_object(&serde_json::to_value(Paint::crd()).unwrap()).await;
        let hook = Hook::defaulter(|paint: &mut Paint, _: &Request| paint.spec.size = 1);
        let _keeping = prepare(&cluster, Webhooks::new("paints").hook(hook)).await;
        let (code, message) = told(create_paint(&cluster, json!({"size": 3})).await);
        let missing = "Paint.example.com \"wall\" is invalid: spec.colour: Required value";
        assert_eq!((code, message.as_str()), (422, missing));
    });
}

#[test]
fn a_rule_about_replicas_holds_for_kubectl_scale_too() {
    testkit::run(|cluster| async move {
        let at_most_5 = |replicas: Option<i32>| match replicas > Some(5) {
            true => Verdict::deny("at most 5 replicas"),
            false => Verdict::allow(),
        };
        let object = Hook::validator(move |review: Review<Deployment>| async move {
            at_most_5(review.change.after().and_then(|object| object.spec.as_ref()?.replicas))
        });
        let scale = Hook::validator(move |review: Review<Scale>| async move {
            at_most_5(review.change.after().and_then(|scale| scale.spec.as_ref()?.replicas))
        });
        let webhooks =
            Webhooks::new("replicas").hook(object).hook(scale.of_subresource_of::<Deployment>("scale"));
        let _keeping = prepare(&cluster, webhooks).await;
        cluster
            .apply_object(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                    "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}))
            .await;
        let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "default");
        let patch = |replicas: i32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let denied = |hook: &str| {
            (403, format!("admission webhook \"{hook}\" denied the request: at most 5 replicas"))
        };
        let params = PatchParams::default();
        let refused = deployments.patch("web", &params, &patch(9)).await;
        assert_eq!(told(refused), denied("validate.deployments.apps"));
        let refused = deployments.patch_scale("web", &params, &patch(9)).await;
        assert_eq!(told(refused), denied("validate-2.deployments.apps"));
        deployments.patch_scale("web", &params, &patch(4)).await.unwrap();
        let web: Deployment = cluster.get("default", "web").await;
        assert_eq!(web.spec.unwrap().replicas, Some(4));
    });
}

#[test]
fn bodies_that_are_no_review_are_refused() {
    testkit::simulate(1, |cluster| async move {
        let webhooks = webhooks();
        let good = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": "CREATE", "kind": {"group": "example.com", "version": "v1", "kind": "Bucket"},
            "resource": {"group": "example.com", "version": "v1", "resource": "buckets"},
            "object": {"metadata": {"name": "a"}, "spec": {"size": "large"}},
        }});
        let path = "/validate/example.com/v1/buckets";
        for (path, body, code, text) in [
            ("/nowhere", json!({}), 404, "no such webhook"),
            (path, json!({}), 400, "this is no AdmissionReview"),
            (path, json!({"apiVersion": "v1", "kind": "Pod"}), 400, "expected a AdmissionReview"),
            (
                path,
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
                400,
                "no request",
            ),
            (path, good.clone(), 200, "the object cannot be read"),
            ("/default/example.com/v1/buckets", good, 200, "the object cannot be read"),
            ("/convert", json!({}), 400, "this is no ConversionReview"),
        ] {
            let reply =
                webhooks.answer(cluster.world(), path, "timeout=5s", body.to_string().as_bytes()).await;
            let said = String::from_utf8_lossy(&reply.body);
            assert_eq!(reply.code.as_u16(), code, "{path} {said}");
            assert!(said.contains(text), "{path} {said}");
        }
    });
}

#[test]
fn the_rules_allow_what_registration_needs_and_no_more() {
    testkit::simulate(1, |cluster| async move {
        let webhooks = webhooks();
        let rules = serde_json::to_value(webhooks.rules()).unwrap();
        let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "operator"}]);
        let bind = |sort: &str, rules: Value| {
            let group = "rbac.authorization.k8s.io";
            let version = format!("{group}/v1");
            let role =
                json!({"apiVersion": version, "kind": sort, "metadata": {"name": "hooks"}, "rules": rules});
            let binding = json!({
                "apiVersion": version, "kind": format!("{sort}Binding"), "metadata": {"name": "hooks"},
                "roleRef": {"apiGroup": group, "kind": sort, "name": "hooks"}, "subjects": subjects,
            });
            [role, binding]
        };
        let secrets =
            json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update"]}]);
        for object in bind("ClusterRole", rules).iter().chain(&bind("Role", secrets)) {
            cluster.apply_object(object).await;
        }
        let (world, client) = (cluster.world().clone(), cluster.client_as("operator", &[]));
        let _keeping = cluster.world().spawn("webhooks", async move {
            Arc::new(webhooks).keep_registered(&world, client, site()).await.unwrap();
        });
        cluster.settle().await;
        let codes: Vec<_> =
            cluster.trace().entries.iter().filter(|it| it.caller == "operator").map(|it| it.code).collect();
        assert_eq!(codes, [404, 201, 201, 201].map(Some));
    });
}
