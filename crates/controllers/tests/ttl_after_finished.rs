//! Jobs that are deleted some time after they have finished.

use crate::rig;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;
use std::time::Duration;

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: done}
spec:
  ttlSecondsAfterFinished: 60
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: nginx}]}}
";

#[test]
fn a_finished_job_is_deleted_after_its_ttl() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["ttl-after-finished-controller"]);
        cluster.apply(JOB).await;
        cluster.advance(Duration::from_secs(3600)).await;
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(cluster.world().wall());
        let status = json!({"status": {"startTime": now, "completionTime": now, "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": now},
            {"type": "Complete", "status": "True", "lastTransitionTime": now}]}});
        cluster.patch_status::<Job>("default", "done", &status).await;
        cluster.advance(Duration::from_secs(50)).await;
        assert!(cluster.get::<Job>("default", "done").await.metadata.deletion_timestamp.is_none());
        cluster.advance(Duration::from_secs(15)).await;
        // The garbage collector, which does not run here, would end the foreground deletion.
        let job: Job = cluster.get("default", "done").await;
        assert_eq!(job.metadata.finalizers.unwrap_or_default(), ["foregroundDeletion"]);
    });
}
