//! What runs pods, and how many of them.

use serde_json::{Value, json};

use super::check;

fn template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
    }})
}

fn labelled() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}})
}

#[test]
fn a_deployment_rolls() {
    check(
        "apps/v1",
        "Deployment",
        json!({"spec": {"template": labelled()}}),
        json!({"spec": {
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "template": template(),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        }}),
    );
    check(
        "apps/v1",
        "Deployment",
        json!({"spec": {"replicas": 0, "strategy": {"type": "Recreate"}, "template": labelled()}}),
        json!({"spec": {
            "replicas": 0, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "template": template(),
            "strategy": {"type": "Recreate"},
        }}),
    );
}

#[test]
fn sets_roll_in_their_own_ways() {
    check(
        "apps/v1",
        "DaemonSet",
        json!({"spec": {"template": labelled()}}),
        json!({
            "metadata": {"annotations": {"deprecated.daemonset.template.generation": "0"}},
            "spec": {
                "revisionHistoryLimit": 10, "template": template(),
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            },
        }),
    );
    check(
        "apps/v1",
        "ReplicaSet",
        json!({"spec": {"template": labelled()}}),
        json!({"spec": {"replicas": 1, "template": template()}}),
    );
    let stateful = |strategy: Value| {
        json!({"spec": {
            "podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10, "template": template(),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "updateStrategy": strategy,
            "volumeClaimTemplates": [{
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "d"},
                "spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"},
            }],
        }})
    };
    let claims = json!([{"metadata": {"name": "d"}}]);
    check(
        "apps/v1",
        "StatefulSet",
        json!({"spec": {"template": labelled(), "volumeClaimTemplates": claims}}),
        stateful(json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})),
    );
    check(
        "apps/v1",
        "StatefulSet",
        json!({"spec": {"template": labelled(), "volumeClaimTemplates": claims, "updateStrategy": {"type": "RollingUpdate"}}}),
        stateful(json!({"type": "RollingUpdate"})),
    );
}

#[test]
fn a_controller_selects_by_its_template() {
    check(
        "v1",
        "ReplicationController",
        json!({"spec": {"template": labelled()}}),
        json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"replicas": 1, "selector": {"a": "b"}, "template": template()},
        }),
    );
}

#[test]
fn a_job_runs_once() {
    let job = |more: Value| {
        let mut spec = json!({
            "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed", "manualSelector": false, "template": template(),
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"metadata": {"labels": {"a": "b"}}, "spec": spec})
    };
    for (given, expected) in [
        (json!({}), json!({"completions": 1})),
        (json!({"parallelism": 2}), json!({"parallelism": 2})),
        (json!({"completions": 3}), json!({"completions": 3})),
        (
            json!({"completions": 1, "backoffLimitPerIndex": 1}),
            json!({"completions": 1, "backoffLimitPerIndex": 1, "backoffLimit": i32::MAX}),
        ),
        (
            json!({"completions": 1, "podFailurePolicy": {"rules": [{"onPodConditions": [{"type": "T"}]}]}}),
            json!({
                "completions": 1, "podReplacementPolicy": "Failed",
                "podFailurePolicy": {"rules": [{"onPodConditions": [{"type": "T", "status": "True"}]}]},
            }),
        ),
    ] {
        let mut given = json!({"spec": given});
        given["spec"]["template"] = labelled();
        check("batch/v1", "Job", given, job(expected));
    }
}

#[test]
fn a_cron_job_keeps_a_few_jobs_and_leaves_its_template_alone() {
    check(
        "batch/v1",
        "CronJob",
        json!({"spec": {"jobTemplate": {"spec": {"template": labelled()}}}}),
        json!({"spec": {
            "concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1, "jobTemplate": {"spec": {"template": template()}},
        }}),
    );
}

#[test]
fn an_autoscaler_watches_the_cpu() {
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    let first = json!({"spec": {"minReplicas": 1, "targetCPUUtilizationPercentage": 80}});
    check("autoscaling/v1", "HorizontalPodAutoscaler", json!({}), first);
    let carried =
        json!({"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[{\"type\":\"Pods\"}]"}});
    check(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        json!({"metadata": carried, "spec": {}}),
        json!({"metadata": carried, "spec": {"minReplicas": 1}}),
    );
    check(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        json!({}),
        json!({"spec": {"minReplicas": 1, "metrics": cpu}}),
    );
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    check(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        json!({"spec": {"metrics": cpu, "minReplicas": 2, "behavior": {"scaleDown": {"selectPolicy": "Min"}}}}),
        json!({"spec": {"metrics": cpu, "minReplicas": 2, "behavior": {
            "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]},
            "scaleDown": {"selectPolicy": "Min", "policies": [percent]},
        }}}),
    );
}
