//! A program that runs as long as this process: started again when it ends, ended with it.

use anyhow::{Context, Result};
use std::{
    fs::{self, File, OpenOptions},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use world::{Moment, World};

/// The first pause before it is started again; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After so long, it has started well.
const STARTED_WELL: Duration = Duration::from_secs(120);
/// A longer log begins anew.
const MAX_LOG: u64 = 64 << 20;
/// How long it may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at while it ends.
const LOOK: Duration = Duration::from_millis(50);

/// What to run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) log: PathBuf,
}

impl Program {
    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn start(&self) -> Result<Child> {
        let log = open_log(&self.log)?;
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C is for this process, which then ends it in its turn.
        command.process_group(0);
        command.spawn().with_context(|| format!("cannot start {}", self.path.display()))
    }
}

/// Appends, so that a program goes on where the file was cut.
fn open_log(path: &Path) -> Result<File> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    log.with_context(|| format!("cannot write {}", path.display()))
}

/// A program, and whether it runs.
#[derive(Debug)]
pub(super) struct WatchedProgram {
    program: Program,
    child: Option<(Child, Moment)>,
    pause: Duration,
    due: Moment,
}

impl WatchedProgram {
    /// It starts with the first look.
    pub(super) fn new(world: &World, program: Program) -> WatchedProgram {
        WatchedProgram { program, child: None, pause: FIRST_PAUSE, due: world.now() }
    }

    pub(super) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Starts it if it is due, and notices its end.
    pub(super) fn look(&mut self, world: &World) {
        if let Some((child, begun)) = &mut self.child {
            let status = match child.try_wait() {
                Ok(None) => return self.shorten_log(),
                Ok(Some(status)) => status.to_string(),
                Err(error) => error.to_string(),
            };
            if world.now().since(*begun) > STARTED_WELL {
                self.pause = FIRST_PAUSE;
            }
            self.child = None;
            self.wait(world, &status);
        } else if world.now() >= self.due {
            match self.program.start() {
                Ok(child) => self.child = Some((child, world.now())),
                Err(error) => self.wait(world, &format!("{error:#}")),
            }
        }
    }

    fn wait(&mut self, world: &World, problem: &str) {
        let (program, log, pause) = (self.program.name(), self.program.log.display(), self.pause);
        tracing::warn!(program, problem, %log, ?pause, "a program of this node has ended; it starts again");
        self.due = world.now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn shorten_log(&self) {
        let is_long = fs::metadata(&self.program.log).is_ok_and(|log| log.len() > MAX_LOG);
        if is_long && let Err(error) = open_log(&self.program.log).and_then(|log| Ok(log.set_len(0)?)) {
            tracing::warn!(%error, "the log of a program of this node stays long");
        }
    }

    /// Sends SIGTERM, and SIGKILL if that does not help.
    pub(super) async fn stop(mut self, world: &World) {
        let Some((child, _)) = &mut self.child else { return };
        #[expect(unsafe_code, reason = "the standard library sends no SIGTERM")]
        // SAFETY: the process is our child and has not been waited for: `look` forgets a child that has ended.
        unsafe {
            libc::kill(child.id().cast_signed(), libc::SIGTERM);
        }
        let begun = world.now();
        while matches!(child.try_wait(), Ok(None)) {
            if world.now().since(begun) > PATIENCE {
                tracing::warn!(program = self.program.name(), "it does not end on SIGTERM, and is killed");
                drop(child.kill());
                drop(child.wait());
                return;
            }
            world.sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &Path) -> Program {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        Program { path: "/bin/sh".into(), arguments, log: folder.join("log") }
    }

    #[test]
    fn a_program_that_ends_is_started_again_after_a_longer_pause_each_time() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().to_owned();
        world::run(|world| async move {
            let mut watched = WatchedProgram::new(&world, shell("echo run; exit 3", &folder));
            for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
                watched.look(&world);
                assert!(watched.child.is_some());
                while watched.child.is_some() {
                    world.sleep(Duration::from_millis(5)).await;
                    watched.look(&world);
                }
                let (left, longest) = (watched.due.since(world.now()), Duration::from_secs(expected));
                assert!(left <= longest && left + FIRST_PAUSE > longest, "{left:?}, {longest:?}");
                watched.look(&world);
                assert!(watched.child.is_none(), "not before its time");
                watched.due = world.now();
            }
            assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), "run\n".repeat(8));
        })
        .unwrap();
    }

    #[test]
    fn a_program_ends_on_request() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().to_owned();
        world::run(|world| async move {
            let script = "trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
            let mut watched = WatchedProgram::new(&world, shell(script, &folder));
            watched.look(&world);
            while !fs::read_to_string(folder.join("log")).unwrap().contains("ready") {
                world.sleep(LOOK).await;
            }
            watched.stop(&world).await;
            assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), "ready\nended\n");
        })
        .unwrap();
    }

    #[test]
    fn a_program_that_cannot_be_started_is_tried_again() {
        let scratch = tempfile::tempdir().unwrap();
        let program = Program { path: "/none".into(), ..shell("", scratch.path()) };
        world::run(|world| async move {
            let mut watched = WatchedProgram::new(&world, program);
            watched.look(&world);
            assert!(watched.child.is_none() && watched.due > world.now());
        })
        .unwrap();
    }
}
