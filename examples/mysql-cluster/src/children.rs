//! The children of a cluster: pure functions.

use crate::{
    observe::member_name,
    plan::{Plan, Restore},
    v1::MySQLCluster,
};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::{CronJob, Job},
    core::v1::{PersistentVolumeClaim, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::ResourceExt;
use operator::name;
use serde_json::{Value, json};

/// The labels of all that belongs to a cluster.
pub(crate) const CLUSTER: &str = "mysql.example.com/cluster";
pub(crate) const ROLE: &str = "mysql.example.com/role";
pub(crate) const VERSION: &str = "mysql.example.com/version";
/// Values of [`ROLE`].
pub(crate) const MEMBER: &str = "member";
pub(crate) const BACKUP: &str = "backup";
pub(crate) const LAST_BACKUP: &str = "last-backup";
pub(crate) const RESTORE: &str = "restore";

const PORT: u16 = 3306;
/// The user `mysql` of the image.
const USER: u32 = 999;
/// How long a member may take until it answers, at least.
const START_SECONDS: u32 = 5;

/// The headless Service, under which each member has a name, that of the primary, and that of all members for reads.
pub(crate) fn services(cluster: &MySQLCluster, plan: &Plan) -> [Service; 3] {
    let name = cluster.name_any();
    let service = |name: String, cluster_ip: Value, selector: Value| -> Service {
        from_json(json!({
            "metadata": {"name": name, "labels": labels(cluster, MEMBER)},
            "spec": {
                "clusterIP": cluster_ip,
                "selector": selector,
                "ports": [{"name": "mysql", "port": PORT}],
            },
        }))
    };
    let mut primary = labels(cluster, MEMBER);
    let pod = member_name(cluster, plan.primary.unwrap_or_default());
    primary["statefulset.kubernetes.io/pod-name"] = json!(pod);
    [
        service(name.clone(), json!("None"), labels(cluster, MEMBER)),
        service(primary_service(cluster), Value::Null, primary),
        service(read_service(cluster), Value::Null, labels(cluster, MEMBER)),
    ]
}

/// Replicas follow the Service of the primary, wherever it points.
pub(crate) fn members(cluster: &MySQLCluster, plan: &Plan) -> StatefulSet {
    let (name, spec) = (cluster.name_any(), &cluster.spec);
    let mut pod_labels = labels(cluster, MEMBER);
    pod_labels[VERSION] = json!(spec.version);
    let container = json!({
        "name": "mysql",
        "image": image(&spec.version),
        // Kubernetes: $(…) is a variable of the container. No server may have the number 0.
        "args": ["--server-id=1$(MEMBER)", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        "env": [
            {"name": "MEMBER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}},
            {"name": "SOURCE_HOST", "value": primary_service(cluster)},
            {"name": "MYSQL_ROOT_PASSWORD", "valueFrom": password(cluster)},
        ],
        "ports": [{"name": "mysql", "containerPort": PORT}],
        "readinessProbe": {
            "exec": {"command": ["mysqladmin", "ping"]}, "initialDelaySeconds": START_SECONDS, "periodSeconds": 5,
        },
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/mysql"}],
    });
    from_json(json!({
        "metadata": {"name": name, "labels": labels(cluster, MEMBER)},
        "spec": {
            "replicas": spec.replicas,
            "serviceName": name,
            // Also members that never became ready can be replaced: the partition says when.
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": plan.partition}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
            "selector": {"matchLabels": labels(cluster, MEMBER)},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": {
                    "containers": [container],
                    "securityContext": {"runAsUser": USER, "runAsNonRoot": true, "fsGroup": USER},
                    "affinity": on_different_nodes(cluster),
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": volume(cluster, &plan.template_storage),
            }],
        },
    }))
}

/// Drains take one member at a time, too.
pub(crate) fn budget(cluster: &MySQLCluster) -> PodDisruptionBudget {
    from_json(json!({
        "metadata": {"name": cluster.name_any(), "labels": labels(cluster, MEMBER)},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(cluster, MEMBER)}},
    }))
}

/// The volume of all backups. It has no owner: it stays when the cluster goes.
pub(crate) fn backup_claim(cluster: &MySQLCluster) -> PersistentVolumeClaim {
    from_json(json!({
        "metadata": {
            "name": backup_claim_name(&cluster.name_any()),
            "namespace": cluster.namespace(),
            "labels": labels(cluster, BACKUP),
        },
        "spec": volume(cluster, &cluster.spec.storage.size),
    }))
}

/// The part of a member's claim that changes: the rest is the StatefulSet's.
pub(crate) fn larger_claim(cluster: &MySQLCluster, claim: &str) -> PersistentVolumeClaim {
    let size = &cluster.spec.storage.size;
    from_json(json!({
        "metadata": {"name": claim, "namespace": cluster.namespace()},
        "spec": {"resources": {"requests": {"storage": size}}},
    }))
}

/// Its history is the list of backups: the CronJob deletes the oldest Job, and the script the oldest file.
pub(crate) fn backups(cluster: &MySQLCluster, plan: &Plan) -> Option<CronJob> {
    let backup = cluster.spec.backup.as_ref()?;
    let name = cluster.name_any();
    Some(from_json(json!({
        "metadata": {"name": format!("{name}-backup"), "labels": labels(cluster, BACKUP)},
        "spec": {
            "schedule": backup.schedule(&name),
            "concurrencyPolicy": "Forbid",
            // A backup of a half-restored database would push a good one out.
            "suspend": matches!(plan.restore, Restore::Running { .. }),
            "successfulJobsHistoryLimit": backup.retention,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": {"labels": labels(cluster, BACKUP)},
                "spec": job_spec(cluster, BACKUP, &backup_claim_name(&name), &dump(cluster, backup.retention)),
            },
        },
    })))
}

/// The backup before the cluster goes. It has no owner: it is how the backup is found again.
pub(crate) fn last_backup(cluster: &MySQLCluster) -> Job {
    let name = cluster.name_any();
    let retention = cluster.spec.backup.as_ref().map_or(1, |backup| backup.retention);
    from_json(json!({
        "metadata": {
            "name": last_backup_name(cluster),
            "namespace": cluster.namespace(),
            "labels": labels(cluster, LAST_BACKUP),
        },
        "spec": job_spec(cluster, LAST_BACKUP, &backup_claim_name(&name), &dump(cluster, retention)),
    }))
}

pub(crate) fn last_backup_name(cluster: &MySQLCluster) -> String {
    // Another cluster of this name makes another one.
    let uid: String = cluster.uid().unwrap_or_default().chars().take(8).collect();
    name::child(&format!("{}-last", cluster.name_any()), &uid)
}

/// Loads a backup of the cluster `of`, until it has been loaded.
pub(crate) fn restore(cluster: &MySQLCluster, plan: &Plan) -> Option<Job> {
    let (Restore::Running { of } | Restore::Failed { of }, Some(backup)) =
        (&plan.restore, &cluster.spec.restore_from)
    else {
        return None;
    };
    let script = format!("mysql --host={} --user=root < /backups/{backup}.sql", primary_service(cluster));
    Some(from_json(json!({
        "metadata": {"name": restore_name(cluster, backup), "labels": labels(cluster, RESTORE)},
        "spec": job_spec(cluster, RESTORE, &backup_claim_name(of), &script),
    })))
}

/// After an upgrade, a restore that has failed is tried again.
pub(crate) fn restore_name(cluster: &MySQLCluster, backup: &str) -> String {
    name::child(&cluster.name_any(), &format!("restore-{backup}-{}", client_version(cluster)))
}

/// The labels as text, for `kubectl scale` and others.
pub(crate) fn selector(cluster: &MySQLCluster) -> String {
    format!("{CLUSTER}={},{ROLE}={MEMBER}", cluster.name_any())
}

/// Writes a file with the name of its Job, and keeps so many files.
fn dump(cluster: &MySQLCluster, retention: i32) -> String {
    let (host, first_old) = (read_service(cluster), retention + 1);
    format!(
        "mysqldump --host={host} --user=root --all-databases --single-transaction > /backups/$BACKUP.sql\n\
         ls -1t /backups/*.sql | tail -n +{first_old} | xargs -r rm"
    )
}

fn job_spec(cluster: &MySQLCluster, role: &str, claim: &str, script: &str) -> Value {
    json!({
        "backoffLimit": 3,
        "template": {
            "metadata": {"labels": labels(cluster, role)},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": role,
                    "image": image(client_version(cluster)),
                    "command": ["sh", "-ec", script],
                    "env": [
                        {"name": "BACKUP", "valueFrom": {"fieldRef": {
                            "fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}},
                        {"name": "MYSQL_PWD", "valueFrom": password(cluster)},
                    ],
                    "volumeMounts": [{"name": "backups", "mountPath": "/backups"}],
                }],
                "securityContext": {"runAsUser": USER, "runAsNonRoot": true, "fsGroup": USER},
                "volumes": [{"name": "backups", "persistentVolumeClaim": {"claimName": claim}}],
            },
        },
    })
}

fn volume(cluster: &MySQLCluster, size: &str) -> Value {
    let mut volume = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
    if let Some(class) = &cluster.spec.storage.storage_class {
        volume["storageClassName"] = json!(class);
    }
    volume
}

/// On different nodes, as far as there are enough.
fn on_different_nodes(cluster: &MySQLCluster) -> Value {
    let term = json!({
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": labels(cluster, MEMBER)},
    });
    let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
}

fn password(cluster: &MySQLCluster) -> Value {
    json!({"secretKeyRef": {"name": cluster.root_secret(), "key": "password"}})
}

fn image(version: &str) -> String {
    format!("mysql:{version}")
}

/// No newer than any server.
fn client_version(cluster: &MySQLCluster) -> &str {
    cluster.complete_version().unwrap_or(&cluster.spec.version)
}

fn primary_service(cluster: &MySQLCluster) -> String {
    format!("{}-primary", cluster.name_any())
}

fn read_service(cluster: &MySQLCluster) -> String {
    format!("{}-read", cluster.name_any())
}

pub(crate) fn backup_claim_name(cluster: &str) -> String {
    format!("{cluster}-backups")
}

fn labels(cluster: &MySQLCluster, role: &str) -> Value {
    json!({(CLUSTER): cluster.name_any(), (ROLE): role})
}

fn from_json<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("it has the fields of its kind")
}
