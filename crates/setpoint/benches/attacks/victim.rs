//! A server under attack: `setpoint up` in its own folder, observed from outside.

use crate::{
    MOST_MEMORY, MOST_TIME, Outcome,
    bench::{client::Client, kubeconfig::Target},
};
use http::Method;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tempfile::TempDir;
use world::{Moment, Task, World};

/// The interval between requests to `/readyz`.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
/// The interval between memory readings.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The attacker, in the file of static tokens.
const TOKENS: &str = "mallory,mallory,2\n";

/// A server, killed when this is dropped.
pub(crate) struct Victim {
    process: Arc<Mutex<Child>>,
    id: u32,
    pub(crate) kubeconfig: PathBuf,
    _folder: TempDir,
}

impl Victim {
    /// Leaves out `flags` that the binary does not know: older ones have fewer.
    pub(crate) async fn start(world: &World, binary: &Path, flags: &[&str]) -> Victim {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tokens"), TOKENS).unwrap();
        let help = Command::new(binary).args(["up", "--help"]).output().unwrap();
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let known = |flag: &&&str| flag.split('=').next().is_some_and(|name| help.contains(name));
        let mut command = Command::new(binary);
        command.args(["up", "--listen", "127.0.0.1:0", "--store", "memory", "--data-dir"]).arg(folder.path());
        command.arg("--token-auth-file").arg(folder.path().join("tokens"));
        command.args(flags.iter().filter(known));
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let id = process.id();
        let mut victim = Victim {
            process: Arc::new(Mutex::new(process)),
            id,
            kubeconfig: PathBuf::new(),
            _folder: folder,
        };
        let ready = world.blocking(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.find_map(|line| Some(line.strip_prefix("ready ")?.split_once(" kubeconfig=")?.1.to_owned()))
        });
        victim.kubeconfig = ready.await.unwrap().into();
        victim
    }

    /// Starts measuring the server.
    pub(crate) async fn watch(&self, world: &World, target: &Arc<Target>) -> Watched {
        // Linux: 5 resets the peak of the resident memory.
        fs::write(format!("/proc/{}/clear_refs", self.id), "5").unwrap();
        let watch = Arc::new(Watch {
            world: world.clone(),
            id: self.id,
            process: Arc::clone(&self.process),
            peak: AtomicU64::new(0),
            processor: AtomicU64::new(0),
            killed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            probing: Mutex::new(None),
            longest: AtomicU64::new(0),
        });
        let (idle, worked) = (memory(self.id, "VmRSS:").unwrap(), processor_time(self.id).unwrap());
        let mut client = Client::connect(world, target).await.unwrap();
        watch.probe(&mut client, target).await.unwrap();
        let looking = Arc::clone(&watch);
        let looking = world.spawn("look", async move { looking.look().await });
        let (probing, target) = (Arc::clone(&watch), Arc::clone(target));
        let probing = world.spawn("probe", async move {
            while !probing.over.load(Relaxed) && probing.probe(&mut client, &target).await.is_some() {
                probing.world.sleep(PROBE_INTERVAL).await;
            }
        });
        Watched { watch, idle, worked, looking, probing }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap();
        drop(process.kill());
        drop(process.wait());
    }
}

/// The measurements of the server, shared by the tasks that take them.
struct Watch {
    world: World,
    id: u32,
    process: Arc<Mutex<Child>>,
    peak: AtomicU64,
    processor: AtomicU64,
    /// For its memory use.
    killed: AtomicBool,
    over: AtomicBool,
    /// When the pending probe was sent.
    probing: Mutex<Option<Moment>>,
    /// The longest that an answered probe took, in microseconds.
    longest: AtomicU64,
}

impl Watch {
    async fn look(&self) {
        while !self.over.load(Relaxed) {
            self.note();
            if memory(self.id, "VmRSS:").is_some_and(|memory| memory > MOST_MEMORY) {
                self.killed.store(true, Relaxed);
                drop(self.process.lock().unwrap().kill());
                return;
            }
            self.world.sleep(LOOK_INTERVAL).await;
        }
    }

    fn note(&self) {
        if let Some(peak) = memory(self.id, "VmHWM:") {
            self.peak.fetch_max(peak, Relaxed);
        }
        if let Some(time) = processor_time(self.id) {
            self.processor.fetch_max(time.as_micros() as u64, Relaxed);
        }
    }

    /// `None` if the server has ended.
    async fn probe(&self, client: &mut Client, target: &Target) -> Option<()> {
        let begin = self.world.now();
        *self.probing.lock().unwrap() = Some(begin);
        let answer = client.send(target.request(Method::GET, "/readyz", "")).await;
        answer.is_ok().then(|| {
            *self.probing.lock().unwrap() = None;
            self.longest.fetch_max(self.world.now().since(begin).as_micros() as u64, Relaxed);
        })
    }
}

/// A server that is being measured.
pub(crate) struct Watched {
    watch: Arc<Watch>,
    idle: u64,
    worked: Duration,
    looking: Task<()>,
    probing: Task<()>,
}

impl Watched {
    /// `answer` is the response to the attacker, if it came in time.
    pub(crate) async fn end(self, answer: Option<String>) -> Outcome {
        let Watched { watch, idle, worked, looking, probing } = self;
        let is_alive = watch.process.lock().unwrap().try_wait().is_ok_and(|ended| ended.is_none());
        let answer = match (watch.killed.load(Relaxed), is_alive, answer) {
            (true, ..) => format!("killed at {} GiB", MOST_MEMORY >> 30),
            (_, false, _) => "the server is gone".to_owned(),
            (_, true, Some(answer)) => answer,
            (_, true, None) => format!("none in {} s", MOST_TIME.as_secs()),
        };
        watch.over.store(true, Relaxed);
        // A pending probe may still be answered.
        let _ = watch.world.timeout(Duration::from_secs(10), probing).await;
        let _ = looking.await;
        watch.note();
        let unanswered = watch.probing.lock().unwrap().map(|sent| watch.world.now().since(sent));
        Outcome {
            answer,
            memory: watch.peak.load(Relaxed).saturating_sub(idle),
            processor: Duration::from_micros(watch.processor.load(Relaxed)).saturating_sub(worked),
            readyz: Duration::from_micros(watch.longest.load(Relaxed)).max(unanswered.unwrap_or_default()),
        }
    }
}

/// A line of the status of a process, in bytes; `None` when it has ended.
fn memory(process: u32, line: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let found = status.lines().find_map(|text| text.strip_prefix(line))?;
    Some(found.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// The processor time of all its threads, ended ones included.
fn processor_time(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Linux: utime and stime are the fields 14 and 15, in hundredths of a second; the second may hold blanks.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}
