//! Some hours of a CronTab: each command, and which objects are different after it, in virtual time.

use example_crontab::{CronTab, NAME, controller, definition, site, webhooks};
use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    core::v1::Node,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Manager, condition, definition as definitions, webhook::Address};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use testkit::Cluster;

const SAMPLE: &str = include_str!("../manifests/sample.yaml");
const NAMESPACE: &str = "default";
const TAB: &str = "my-new-cron-object";
const HOUR: i64 = 3600;
/// A run takes about a second.
const STEP: Duration = Duration::from_millis(100);
/// It has ended long before so many steps.
const MAX_STEPS: usize = 300;

/// Plays the story, and hands each line to `print`.
pub(crate) async fn play(cluster: Cluster, print: impl FnMut(&str)) {
    cluster.apply(&definitions::yaml(&definition())).await;
    let _control_plane = cluster.control_plane().nodes(1).start();
    let manager = Manager::new(NAME, cluster.world(), cluster.client_as(NAME, &["system:masters"]));
    let site = site(Address::Url("https://crontab-operator.example.com".to_owned()));
    let manager = manager.webhooks(webhooks(), ([0, 0, 0, 0], 0), site);
    let _operator = cluster.run(manager.controller(controller()));
    cluster.settle().await;

    let mut story = Story { cluster, print, known: BTreeMap::new() };
    story.say("$ kubectl apply -f examples/crontab/manifests/sample.yaml");
    SAMPLE.lines().for_each(|line| story.say(&format!("    {line}")));
    story.cluster.apply(SAMPLE).await;
    story.look().await;
    story.patch("@hourly").await;
    story.run().await;
    story.scale(5).await;
    story.patch("0 0 30 2 *").await;
    story.patch("99 * * * *").await;
    story.delete_during_a_run().await;
}

struct Story<P> {
    cluster: Cluster,
    print: P,
    /// The last line about each object: only what is new is told.
    known: BTreeMap<String, String>,
}

impl<P: FnMut(&str)> Story<P> {
    fn say(&mut self, line: &str) {
        (self.print)(line);
    }

    /// Another schedule, which may be refused.
    async fn patch(&mut self, cron_spec: &str) {
        let patch = json!({"spec": {"cronSpec": cron_spec}});
        self.say(&format!("\n$ kubectl patch crontab {TAB} --type=merge -p '{patch}'"));
        if let Err(kube::Error::Api(status)) = self.cluster.try_patch::<CronTab>(NAMESPACE, TAB, &patch).await
        {
            self.say(&format!("Error from server: {}", status.message));
        }
        self.look().await;
    }

    async fn scale(&mut self, replicas: i32) {
        self.say(&format!("\n$ kubectl scale crontab {TAB} --replicas={replicas}"));
        let tabs: Api<CronTab> = Api::default_namespaced(self.cluster.client());
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        if let Err(problem) = tabs.patch_scale(TAB, &PatchParams::default(), &patch).await {
            self.say(&problem.to_string());
        }
        self.look().await;
    }

    /// The next full hour, until the run has ended.
    async fn run(&mut self) {
        self.say("");
        self.next_hour().await;
        self.until(|story| story.runs("under way") == 0).await;
    }

    /// The last schedule was refused: the one before goes on. Without a node, its run does not come to an end.
    async fn delete_during_a_run(&mut self) {
        self.close_nodes(true).await;
        self.next_hour().await;
        self.say(&format!("\n$ kubectl delete crontab {TAB} --wait=false"));
        self.cluster.delete::<CronTab>(NAMESPACE, TAB).await;
        self.look().await;
        self.close_nodes(false).await;
        self.until(|story| story.known.is_empty()).await;
    }

    async fn close_nodes(&mut self, is_closed: bool) {
        let verb = if is_closed { "cordon" } else { "uncordon" };
        let patch = json!({"spec": {"unschedulable": is_closed}});
        let nodes = self.cluster.list::<Node>(None).await;
        let names: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
        self.say(&format!("\n$ kubectl {verb} {}", names.join(" ")));
        for name in names {
            self.cluster.patch::<Node>(None, &name, &patch).await;
        }
    }

    /// Lets time pass until a run has begun.
    async fn next_hour(&mut self) {
        let past = self.cluster.world().wall().as_second() % HOUR;
        let before = self.runs("");
        // Not quite: the run may end in the second in which it begins.
        let rest = u64::try_from(HOUR - past - 1).unwrap_or_default();
        self.cluster.advance(Duration::from_secs(rest)).await;
        self.until(|story| story.runs("") > before).await;
    }

    async fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..MAX_STEPS {
            self.look().await;
            if is_so(self) {
                return;
            }
            self.cluster.advance(STEP).await;
        }
    }

    /// How many Jobs there are whose line begins so.
    fn runs(&self, state: &str) -> usize {
        let jobs = self.known.iter().filter(|(name, _)| name.starts_with("job/"));
        jobs.filter(|(_, line)| line.starts_with(state)).count()
    }

    /// Tells of each object that is different since the last look.
    async fn look(&mut self) {
        self.cluster.settle().await;
        let second = self.cluster.world().wall().as_second();
        let time = format!("{:02}:{:02}:{:02}", second / HOUR % 24, second / 60 % 60, second % 60);
        let now = objects(&self.cluster).await;
        let gone: Vec<_> = self.known.keys().filter(|name| !now.contains_key(*name)).cloned().collect();
        for (name, line) in &now {
            if self.known.get(name) != Some(line) {
                self.say(&format!("{time}  {name:<32} {line}"));
            }
        }
        for name in gone {
            self.say(&format!("{time}  {name:<32} deleted"));
        }
        self.known = now;
    }
}

/// A line about each object.
async fn objects(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for tab in cluster.list::<CronTab>(NAMESPACE).await {
        let status = tab.status.clone().unwrap_or_default();
        let ready = condition::find(&status.conditions, "Ready").map(|it| (&it.status, &it.reason));
        let ready = ready.map(|(status, reason)| format!("Ready={status} ({reason})")).unwrap_or_default();
        let line = format!("{:?}, {} replicas, {ready}", tab.spec.cron_spec, status.replicas);
        lines.insert(format!("crontab/{}", tab.name_any()), line);
    }
    for cron_job in cluster.list::<CronJob>(NAMESPACE).await {
        let suspended = if cron_job.spec.suspend == Some(true) { ", suspended" } else { "" };
        let line = format!("{:?}{suspended}", cron_job.spec.schedule);
        lines.insert(format!("cronjob/{}", cron_job.name_any()), line);
    }
    for job in cluster.list::<Job>(NAMESPACE).await {
        let pods = job.spec.as_ref().and_then(|spec| spec.completions).unwrap_or_default();
        let status = job.status.clone().unwrap_or_default();
        let line = match status.completion_time {
            Some(_) => format!("complete, {pods} pods"),
            None => format!("under way, {} of {pods} pods are done", status.succeeded.unwrap_or_default()),
        };
        lines.insert(format!("job/{}", job.name_any()), line);
    }
    lines
}
