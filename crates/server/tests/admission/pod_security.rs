//! PodSecurity: standards in namespace labels are enforced for pods and reported for templates.

use super::{PODS, pod, story};
use serde_json::{Value, json};
use server::Config;

fn labelled(labels: &[(&str, &str)]) -> Value {
    let labels =
        labels.iter().map(|(name, value)| (format!("pod-security.kubernetes.io/{name}"), json!(value)));
    json!({"metadata": {"labels": labels.collect::<serde_json::Map<_, _>>()}})
}

const WEAK: &str = r#"allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#;

#[test]
fn a_namespace_enforces_the_standard_of_its_labels() {
    story(Config::default(), |cluster| async move {
        let label = |labels: &[(&str, &str)]| {
            let (cluster, change) = (cluster.clone(), labelled(labels));
            async move { cluster.send("PATCH /api/v1/namespaces/n", change).await }
        };
        cluster.made(&format!("POST {PODS}"), pod("old", json!({"hostNetwork": true}))).await;
        cluster.made(&format!("POST {PODS}"), pod("older", json!({"hostNetwork": true}))).await;
        cluster.made(&format!("POST {PODS}"), pod("weak", json!({}))).await;
        let answer = label(&[("enforce", "baseline")]).await;
        assert_eq!(
            answer.warnings,
            [
                r#"299 - "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"""#,
                r#"299 - "old (and 1 other pod): host namespaces""#,
            ]
        );
        let message = r#"pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)"#;
        cluster.refused(&format!("POST {PODS}"), pod("p", json!({"hostNetwork": true})), 403, message).await;
        let answer = cluster.send(&format!("POST {PODS}"), pod("p", json!({}))).await;
        assert_eq!((answer.code, answer.warnings.len()), (201, 0), "{}", answer.body);

        let answer = label(&[("enforce", "restricted"), ("enforce-version", "v1.30")]).await;
        assert_eq!(answer.warnings.len(), 3, "{:?}", answer.warnings);
        let message = format!(r#"pods "q" is forbidden: violates PodSecurity "restricted:v1.30": {WEAK}"#);
        cluster.refused(&format!("POST {PODS}"), pod("q", json!({})), 403, &message).await;
        // Updates of existing pods are allowed, except for other images.
        cluster.made(&format!("PATCH {PODS}/p"), json!({"metadata": {"labels": {"a": "b"}}})).await;
        let mut changed = cluster.get(&format!("{PODS}/p")).await;
        changed["spec"]["containers"][0]["image"] = json!("other");
        let answer = cluster.send(&format!("PUT {PODS}/p"), changed).await;
        assert_eq!(answer.code, 403, "{}", answer.body);
    });
}

#[test]
fn writers_of_pod_templates_are_warned() {
    story(Config::default(), |cluster| async move {
        cluster
            .made("PATCH /api/v1/namespaces/n", labelled(&[("warn", "restricted"), ("audit", "baseline")]))
            .await;
        let would = format!(
            r#"299 - "would violate PodSecurity \"restricted:latest\": {}""#,
            WEAK.replace('"', "\\\"")
        );
        let answer = cluster.send(&format!("POST {PODS}"), pod("p", json!({}))).await;
        assert_eq!((answer.code, &answer.warnings), (201, &vec![would.clone()]));
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("", json!({}))["spec"]});
        let mut job = template.clone();
        job["spec"]["restartPolicy"] = json!("Never");
        let selector = json!({"matchLabels": {"a": "b"}});
        for (path, spec) in [
            ("/apis/apps/v1/namespaces/n/deployments", json!({"selector": selector, "template": template})),
            ("/apis/apps/v1/namespaces/n/daemonsets", json!({"selector": selector, "template": template})),
            ("/apis/batch/v1/namespaces/n/jobs", json!({"template": job})),
            (
                "/apis/batch/v1/namespaces/n/cronjobs",
                json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job}}}),
            ),
        ] {
            let object = json!({"metadata": {"name": "x"}, "spec": spec});
            let answer = cluster.send(&format!("POST {path}"), object).await;
            assert_eq!(
                (answer.code, &answer.warnings),
                (201, &vec![would.clone()]),
                "{path} {}",
                answer.body
            );
        }
    });
}

#[test]
fn invalid_labels_are_rejected() {
    story(Config::default(), |cluster| async move {
        let mut namespace = labelled(&[("enforce", "strict"), ("warn-version", "1.2")]);
        namespace["metadata"]["name"] = json!("m");
        let answer = cluster.send("POST /api/v1/namespaces", namespace).await;
        assert_eq!(answer.code, 422);
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        let shown: Vec<_> =
            causes.iter().map(|cause| format!("{} {}", cause["field"], cause["message"])).collect();
        assert_eq!(
            shown,
            [
                r#""metadata.labels[pod-security.kubernetes.io/enforce]" "Invalid value: \"strict\": must be one of privileged, baseline, restricted""#,
                r#""metadata.labels[pod-security.kubernetes.io/warn-version]" "Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"""#,
            ]
        );
    });
}
