//! `cargo xtask suites`: test suites of other projects that start their own control plane, against Setpoint.
//!
//! They use envtest, which starts the programs `kube-apiserver` and `etcd` of a folder: the one that `setpoint assets`
//! writes, or one with the real programs, for comparison.

use crate::{
    cluster::{self, Against},
    examples, interop, tools,
};
use anyhow::{Context, Result, bail};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// A suite: packages of a module in `interop/go.mod`.
struct Suite {
    name: &'static str,
    packages: &'static [&'static str],
}

const SUITES: [Suite; 2] = [
    Suite { name: "controller-runtime", packages: &["sigs.k8s.io/controller-runtime/..."] },
    Suite {
        name: "cluster-api",
        packages: &[
            "sigs.k8s.io/cluster-api/controllers/clustercache",
            "sigs.k8s.io/cluster-api/controllers/crdmigrator",
            "sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment",
            "sigs.k8s.io/cluster-api/core/reconcilers/machineset",
            "sigs.k8s.io/cluster-api/util/patch/test",
        ],
    },
];

/// The examples of client-go.
const EXAMPLES: &str = "client-go";

#[derive(Default)]
pub(crate) struct SuiteTally {
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<String>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let mut against = Against::Setpoint;
    let mut chosen = Vec::new();
    let mut examples = false;
    let mut more = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--against" => {
                against = match arguments.next().copied() {
                    Some("memory") => Against::Setpoint,
                    Some("etcd") => Against::SetpointOnEtcd,
                    Some("real") => Against::Real,
                    _ => bail!("--against: say memory, etcd (Setpoint on etcd) or real"),
                }
            }
            "--" => more = arguments.by_ref().map(|argument| (*argument).to_owned()).collect(),
            EXAMPLES => examples = true,
            name => {
                let suite = SUITES.iter().find(|suite| suite.name == name);
                let known: Vec<_> = SUITES.iter().map(|suite| suite.name).chain([EXAMPLES]).collect();
                chosen.push(suite.with_context(|| format!("{name} is none of {}", known.join(", ")))?);
            }
        }
    }
    if chosen.is_empty() && !examples {
        (chosen, examples) = (SUITES.iter().collect(), true);
    }
    let assets = assets(against)?;
    println!("export KUBEBUILDER_ASSETS={}", assets.display());
    let mut tally = SuiteTally::default();
    for suite in chosen {
        println!("\n── {} against {against:?}", suite.name);
        let (begun, before) = (Instant::now(), (tally.passed, tally.failed));
        suite.run(&assets, &more, &mut tally)?;
        let (passed, failed) = (tally.passed - before.0, tally.failed - before.1);
        println!("{}: {passed} passed, {failed} failed in {} s", suite.name, begun.elapsed().as_secs());
    }
    if examples {
        println!("\n── {EXAMPLES} against {against:?}");
        let folder = tools::root()?.join("target/envtest/cluster");
        let mut cluster = cluster::Cluster::start(against, cluster::ControlLoops::Others, &folder)?;
        cluster.add_real_controllers()?;
        examples::run(&cluster, &mut tally)?;
    }
    println!();
    tally.failures.iter().for_each(|failure| println!("{failure}"));
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(if tally.failed == 0 && tally.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A folder with the programs that envtest starts.
fn assets(against: Against) -> Result<PathBuf> {
    let folder = tools::root()?.join("target/envtest").join(format!("{against:?}").to_lowercase());
    fs::create_dir_all(&folder)?;
    let real = |name: &str| Ok::<_, anyhow::Error>(interop::build(&[name])?.remove(0));
    let replaced = match against {
        Against::Setpoint => Vec::new(),
        Against::SetpointOnEtcd => vec!["etcd"],
        Against::Real => vec!["etcd", "kube-apiserver"],
    };
    for name in &replaced {
        drop(fs::remove_file(folder.join(name)));
    }
    // As users do it; with the real kubectl on PATH.
    let kubectl = real("kubectl")?;
    let bin = kubectl.parent().context("the folder of kubectl")?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths([bin.to_owned()].into_iter().chain(std::env::split_paths(&paths)))?;
    let mut command = Command::new(cluster::build_setpoint()?);
    let status = command.arg("assets").arg(&folder).env("PATH", paths).stdout(Stdio::null()).status();
    if !status.with_context(|| format!("cannot run {command:?}"))?.success() {
        bail!("{command:?} failed");
    }
    for name in replaced {
        let link = folder.join(name);
        fs::remove_file(&link)?;
        symlink(real(name)?, &link).with_context(|| format!("cannot write {}", link.display()))?;
    }
    Ok(folder)
}

impl Suite {
    fn run(&self, assets: &Path, more: &[String], tally: &mut SuiteTally) -> Result<()> {
        let mut command = interop::go()?;
        // One package at a time: each starts its own control planes.
        command
            .args(["test", "-v", "-count=1", "-vet=off", "-p=1", "-timeout=30m"])
            .args(self.packages)
            .args(more);
        command.env("KUBEBUILDER_ASSETS", assets).env("NO_COLOR", "1").stdout(Stdio::piped());
        let mut log = fs::File::create(tools::root()?.join(format!("target/envtest/{}.log", self.name)))?;
        let mut child = command.stderr(Stdio::inherit()).spawn().context("cannot run go")?;
        for line in BufReader::new(child.stdout.take().context("what go says")?).split(b'\n') {
            let line = line?;
            let line = without_colours(&String::from_utf8_lossy(&line));
            writeln!(log, "{line}")?;
            tally.read(&line);
            if line.starts_with("ok  \t") || line.starts_with("FAIL\t") {
                println!("{line}");
            }
        }
        let failed = !child.wait()?.success();
        if failed && tally.failed == 0 {
            tally.failed = 1;
            tally.failures.push(format!("{}: go test failed before it could count", self.name));
        }
        Ok(())
    }
}

impl SuiteTally {
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn fail(&mut self, failure: String) {
        self.failed += 1;
        self.failures.push(format!("FAIL {failure}"));
    }

    /// Counts a line of `go test -v`: plain tests one by one, Ginkgo suites by their last line.
    fn read(&mut self, line: &str) {
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("--- PASS: ") {
            self.passed += u64::from(!is_ginkgo(name));
        } else if let Some(name) = line.strip_prefix("--- FAIL: ") {
            if !is_ginkgo(name) {
                self.failed += 1;
                self.failures.push(format!("FAIL {name}"));
            }
        } else if line.starts_with("--- SKIP: ") {
            self.skipped += 1;
        } else if let Some(name) = line.strip_prefix("[FAIL] ").or_else(|| line.strip_prefix("[PANICKED!] "))
        {
            let failure = format!("FAIL {name}");
            if !self.failures.contains(&failure) {
                self.failures.push(failure);
            }
        } else if line.starts_with("SUCCESS! -- ") || line.starts_with("FAIL! -- ") {
            let count = |word: &str| {
                let before = line.split(word).next().unwrap_or_default().trim_end();
                before.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
            };
            self.passed += count(" Passed");
            self.failed += count(" Failed");
            self.skipped += count(" Skipped");
        }
    }
}

/// The one Go test that runs all Ginkgo specs of a package, which are counted themselves.
// controller-runtime: each of these packages has this name.
fn is_ginkgo(name: &str) -> bool {
    let name = name.split(' ').next().unwrap_or_default();
    matches!(name, "TestSource" | "TestAPIs" | "TestRecorder" | "TestConversionWebhook")
        || name.ends_with("Suite")
}

/// Ginkgo writes colours even to a pipe.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_and_tests_are_counted_once() {
        let mut tally = SuiteTally::default();
        for line in [
            "--- PASS: TestSource (4.20s)",
            "SUCCESS! -- 34 Passed | 0 Failed | 0 Pending | 2 Skipped",
            "\u{1b}[38;5;9m\u{1b}[1mFAIL!\u{1b}[0m -- \u{1b}[38;5;10m3 Passed\u{1b}[0m | 1 Failed | 0 Pending | 0 Skipped",
            "  [FAIL] cache [It] lists",
            "  [FAIL] cache [It] lists",
            "--- PASS: TestPlain (0.00s)",
            "    --- FAIL: TestPlain/part (0.00s)",
        ] {
            tally.read(&without_colours(line));
        }
        assert_eq!((tally.passed, tally.failed, tally.skipped), (38, 2, 2));
        assert_eq!(tally.failures, ["FAIL cache [It] lists", "FAIL TestPlain/part (0.00s)"]);
    }
}
