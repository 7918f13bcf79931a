//! One side of the comparison: a server with simulated nodes, and who runs the control loops.

use crate::{
    Cost, SETPOINT,
    bench::own_server::OwnServer,
    process::{busy, resident},
    work::{self, Work},
};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::runtime::wait::await_condition;
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use world::World;

/// Far more than its defaults (20 and 30), so that the real programs wait for nothing but their own work.
const REQUESTS_PER_SECOND: u32 = 5_000;
const PAUSE: Duration = Duration::from_millis(50);

/// Who runs the control loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    None,
    Own,
    /// The programs in this folder.
    Real(PathBuf),
}

/// A running side; its processes end with it.
pub(crate) struct Side {
    server: OwnServer,
    programs: Vec<Child>,
    pub(crate) client: Client,
}

impl Side {
    /// Starts it, and waits until its nodes are there and pods can be created.
    pub(crate) async fn start(world: &World, sort: Sort, nodes: usize) -> Side {
        let count = nodes.to_string();
        let mut arguments = vec!["--nodes", count.as_str()];
        if sort != Sort::Own {
            arguments.push("--controllers=");
        }
        let (server, _) = OwnServer::start(world, Path::new(SETPOINT), &arguments).await.unwrap();
        let client = client(&server.kubeconfig).await;
        let mut side = Side { server, programs: Vec::new(), client };
        if let Sort::Real(tools) = &sort {
            side.start_real(tools);
        }
        if sort != Sort::None {
            side.wait_until_ready(world, nodes).await;
        }
        side
    }

    fn start_real(&mut self, tools: &Path) {
        let folder = self.server.kubeconfig.parent().unwrap().to_owned();
        let pki = |file: &str| folder.join("pki").join(file).display().to_string();
        let kubeconfig = self.server.kubeconfig.display().to_string();
        let mut manager = Command::new(tools.join("kube-controller-manager"));
        manager.args([
            format!("--kubeconfig={kubeconfig}"),
            format!("--service-account-private-key-file={}", pki("sa.key")),
            format!("--root-ca-file={}", pki("ca.crt")),
            "--use-service-account-credentials=true".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--kube-api-qps={REQUESTS_PER_SECOND}"),
            format!("--kube-api-burst={}", 2 * REQUESTS_PER_SECOND),
        ]);
        let configuration = json!({"apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": false},
            "clientConnection": {"kubeconfig": kubeconfig, "qps": REQUESTS_PER_SECOND,
                "burst": 2 * REQUESTS_PER_SECOND}});
        let file = folder.join("scheduler.json");
        fs::write(&file, configuration.to_string()).unwrap();
        let mut scheduler = Command::new(tools.join("kube-scheduler"));
        scheduler.arg(format!("--config={}", file.display())).arg("--secure-port=0");
        for (name, command) in [("kube-controller-manager", &mut manager), ("kube-scheduler", &mut scheduler)]
        {
            let log = File::create(folder.join(format!("{name}.log"))).unwrap();
            command.env("HOME", &folder).current_dir(&folder).stdin(Stdio::null());
            command.stdout(log.try_clone().unwrap()).stderr(log);
            self.programs.push(command.spawn().unwrap());
        }
    }

    /// Until all nodes can take pods, and the control loops work: a new namespace has its account and a pod runs.
    async fn wait_until_ready(&mut self, world: &World, nodes: usize) {
        let api: Api<Node> = Api::all(self.client.clone());
        let is_open = |node: &Node| node.spec.as_ref().is_none_or(|spec| spec.taints.is_none());
        while api.list(&ListParams::default()).await.unwrap().items.iter().filter(|it| is_open(it)).count()
            < nodes
        {
            world.sleep(PAUSE).await;
        }
        let accounts: Api<ServiceAccount> = Api::default_namespaced(self.client.clone());
        while accounts.get_opt("default").await.unwrap().is_none() {
            world.sleep(PAUSE).await;
        }
        self.time_to_running_pod(world, usize::MAX).await;
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        work::delete_and_wait(&pods, &pod_name(usize::MAX)).await;
    }

    /// Seconds from the request that creates a pod until it is Running.
    pub(crate) async fn time_to_running_pod(&mut self, world: &World, number: usize) -> f64 {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let name = pod_name(number);
        let pod = json!({"metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "nginx"}]}});
        let begin = world.now();
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let is_running = |pod: Option<&Pod>| {
            pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()).is_some_and(|phase| phase == "Running")
        };
        await_condition(pods, &name, is_running).await.unwrap();
        world.now().since(begin).as_secs_f64()
    }

    /// Does a piece of work, and returns what it cost.
    pub(crate) async fn measure(&mut self, world: &World, work: Work) -> Cost {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        work.prepare(world, &self.client, &namespaces).await;
        let (requests, busy) = (self.requests().await, self.processor_seconds());
        let begin = world.now();
        work.perform(&self.client).await;
        let seconds = world.now().since(begin).as_secs_f64();
        let cost = Cost {
            seconds,
            requests: self.requests().await - requests,
            processor_seconds: self.processor_seconds() - busy,
            bytes: self.bytes() as f64,
        };
        work.clean(&self.client).await;
        cost
    }

    pub(crate) fn processor_seconds(&self) -> f64 {
        self.processes().map(|process| busy(process).as_secs_f64()).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.processes().map(resident).sum()
    }

    /// The memory of the programs beside the server.
    pub(crate) fn loop_bytes(&self) -> u64 {
        self.programs.iter().map(|program| resident(program.id())).sum()
    }

    fn processes(&self) -> impl Iterator<Item = u32> {
        [self.server.process.id()].into_iter().chain(self.programs.iter().map(Child::id))
    }

    /// All requests that the server has answered.
    async fn requests(&self) -> f64 {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let page = self.client.request_text(request).await.unwrap();
        let lines = page.lines().filter(|line| line.starts_with("apiserver_request_total"));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        for program in &mut self.programs {
            drop(program.kill());
            drop(program.wait());
        }
    }
}

fn pod_name(number: usize) -> String {
    format!("probe-{number}")
}

async fn client(kubeconfig: &Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
