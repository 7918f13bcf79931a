//! `cargo xtask conformance`: runs the official conformance tests of Kubernetes against a fresh control
//! plane.

use crate::{
    cluster::{Against, Cluster, ControlLoops},
    interop, tools,
};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

/// The default of `--focus`: the tests of the API server and its controllers.
const FOCUS: &str = r"\[sig-(api-machinery|auth|instrumentation|architecture)\].*\[Conformance\]";
/// Tests that need more than simulated nodes, each with its reason.
const LEFT_OUT: &str = "interop/left-out.txt";

struct Options {
    focus: String,
    /// Tests to skip this time.
    skip: Option<String>,
    against: Against,
    with_real_controllers: bool,
    /// Whether containers run, on this machine.
    with_real_nodes: bool,
    /// How many tests run at a time.
    processes: u16,
    /// Whether the tests of [`LEFT_OUT`] run as well.
    everything: bool,
}

/// The result of one test.
struct Outcome {
    name: String,
    state: String,
    reason: String,
}

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    let folder = tools::root()?.join("target/conformance");
    let cluster = options.start(&folder)?;
    let kubectl = interop::build(&["kubectl"])?.remove(0);
    let report = folder.join("report.json");
    let left_out = if options.everything || options.with_real_nodes { Vec::new() } else { left_out()? };
    let skipped = left_out.iter().map(|(pattern, _)| pattern.clone()).chain(options.skip.clone());
    let mut command = options.suite(&report, skipped)?;
    command
        .arg(format!("--kubeconfig={}", cluster.kubeconfig.display()))
        .arg(format!("--kubectl-path={}", kubectl.display()))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1", "--dump-logs-on-failure=false"])
        .arg("--disable-log-dump=true");
    follow(command.current_dir(&folder), &folder.join("e2e.log"), options.processes > 1)?;
    let outcomes = read(&fs::read_to_string(&report).context("the suite left no report; see e2e.log")?)?;
    drop(cluster);
    Ok(print_summary(&outcomes, &left_out))
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Options> {
        let mut options = Options {
            focus: FOCUS.to_owned(),
            skip: None,
            against: Against::Setpoint,
            with_real_controllers: false,
            with_real_nodes: false,
            processes: 1,
            everything: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match *argument {
                "--focus" => options.focus = (*value()?).to_owned(),
                "--skip" => options.skip = Some((*value()?).to_owned()),
                "--against" => {
                    options.against = match *value()? {
                        "setpoint" => Against::Setpoint,
                        "etcd" => Against::SetpointOnEtcd,
                        "real" => Against::Real,
                        other => bail!("--against {other}: say setpoint, etcd (Setpoint on etcd) or real"),
                    }
                }
                "--with-real-controllers" => options.with_real_controllers = true,
                "--with-real-nodes" => options.with_real_nodes = true,
                "--procs" => options.processes = value()?.parse().context("--procs needs a number")?,
                "--everything" => options.everything = true,
                other => bail!("conformance does not know {other}"),
            }
        }
        if options.with_real_nodes && (options.with_real_controllers || options.against != Against::Setpoint)
        {
            bail!("--with-real-nodes is for Setpoint with its own controllers");
        }
        Ok(options)
    }

    /// The suite without its own options: in one process, or in several by its runner.
    fn suite(&self, report: &Path, skipped: impl Iterator<Item = String>) -> Result<Command> {
        let built = interop::build(&["e2e.test"])?.remove(0);
        let is_alone = self.processes == 1;
        let mut command = match is_alone {
            true => Command::new(&built),
            false => Command::new(interop::build(&["ginkgo"])?.remove(0)),
        };
        let prefix = if is_alone { "--ginkgo." } else { "--" };
        let mut option = |text: &str| {
            command.arg(format!("{prefix}{text}"));
        };
        for text in ["v", "no-color", "timeout=3h"] {
            option(text);
        }
        option(&format!("focus={}", self.focus));
        skipped.for_each(|pattern| option(&format!("skip={pattern}")));
        if is_alone {
            option(&format!("json-report={}", report.display()));
            return Ok(command);
        }
        option(&format!("procs={}", self.processes));
        // The runner takes a name, and puts it into the folder in which it runs.
        option(&format!("json-report={}", report.file_name().unwrap_or_default().display()));
        command.arg(&built).arg("--");
        Ok(command)
    }

    fn start(&self, folder: &Path) -> Result<Cluster> {
        if self.with_real_nodes {
            return Cluster::start_with_real_node(folder);
        }
        let control_loops = if self.with_real_controllers { ControlLoops::Others } else { ControlLoops::Own };
        let mut cluster = Cluster::start(self.against, control_loops, folder)?;
        if self.with_real_controllers {
            cluster.add_real_controllers()?;
        }
        Ok(cluster)
    }
}

/// The patterns of tests that are not run, and the reasons.
fn left_out() -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(tools::root()?.join(LEFT_OUT)).context(LEFT_OUT)?;
    Ok(parse_left_out(&text))
}

/// A line that begins with `#` is the reason for the patterns below it.
fn parse_left_out(text: &str) -> Vec<(String, String)> {
    let mut reason = "";
    let mut found = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix('#') {
            Some(comment) => reason = comment.trim(),
            None => found.push((line.to_owned(), reason.to_owned())),
        }
    }
    found
}

/// Runs the suite with its output in a file, and prints each result with the name of its test: in the line before, or, if
/// several processes report, in the line after it.
fn follow(command: &mut Command, log: &Path, names_follow: bool) -> Result<()> {
    use std::io::Write;
    let mut log = fs::File::create(log)?;
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start e2e.test")?;
    let (mut done, mut name, mut result) = (0, String::new(), None::<String>);
    for line in BufReader::new(child.stdout.take().context("what the suite says")?).lines() {
        let line = line?;
        writeln!(log, "{line}")?;
        let is_name = line.starts_with("[sig-");
        let is_result = line.starts_with("• ");
        if is_name {
            name.clone_from(&line);
        }
        if is_result {
            done += 1;
            result = Some(line);
        }
        let is_complete = if names_follow { is_name } else { is_result };
        if let Some(result) = result.take_if(|_| is_complete) {
            println!("{done:>4}  {result} {name}");
        }
    }
    child.wait()?;
    Ok(())
}

fn read(report: &str) -> Result<Vec<Outcome>> {
    let suites: Vec<Value> = serde_json::from_str(report).context("the report of the suite")?;
    let specs = suites.iter().flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten());
    let outcomes = specs.filter(|spec| spec["LeafNodeType"] == "It" || spec["State"] == "failed");
    Ok(outcomes.map(outcome).collect())
}

fn outcome(spec: &Value) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let containers = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten().map(text);
    let name: Vec<_> = containers.chain([text(&spec["LeafNodeText"])]).collect();
    let message = text(&spec["Failure"]["Message"]);
    let reason: Vec<_> = message.split_whitespace().collect();
    Outcome {
        name: name.join(" "),
        state: text(&spec["State"]),
        reason: reason.join(" ").chars().take(300).collect(),
    }
}

fn print_summary(outcomes: &[Outcome], left_out: &[(String, String)]) -> ExitCode {
    let count = |states: &[&str]| outcomes.iter().filter(|it| states.contains(&it.state.as_str())).count();
    let passed = count(&["passed"]);
    let skipped = count(&["skipped", "pending"]);
    let failed: Vec<_> =
        outcomes.iter().filter(|it| !["passed", "skipped", "pending"].contains(&it.state.as_str())).collect();
    println!();
    for (pattern, reason) in left_out {
        println!("left out  {pattern}: {reason}");
    }
    for Outcome { name, state, reason } in &failed {
        println!("{state}  {name}: {reason}");
    }
    for (sig, [passed, failed]) in by_sig(outcomes) {
        println!("{sig:<24} {passed:>4} passed {failed:>4} failed");
    }
    println!("{passed} passed, {} failed, {skipped} skipped", failed.len());
    if failed.is_empty() && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many tests of each group passed and failed. A name begins with its group: `[sig-node] Pods`.
fn by_sig(outcomes: &[Outcome]) -> BTreeMap<&str, [usize; 2]> {
    let mut found: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for Outcome { name, state, .. } in outcomes {
        let at = match state.as_str() {
            "passed" => 0,
            "skipped" | "pending" => continue,
            _ => 1,
        };
        found.entry(name.split(' ').next().unwrap_or_default()).or_default()[at] += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_each_test_and_its_failure() {
        let report = r#"[{"SpecReports": [
            {"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-a] Pods"], "LeafNodeText": "run", "State": "passed"},
            {"LeafNodeType": "It", "LeafNodeText": "fall", "State": "failed", "Failure": {"Message": "expected\n  1"}},
            {"LeafNodeType": "BeforeSuite", "State": "passed"},
            {"LeafNodeType": "BeforeSuite", "State": "failed", "Failure": {"Message": "no nodes"}}
        ]}]"#;
        let outcomes = read(report).unwrap();
        let found: Vec<_> = outcomes.iter().map(|it| [&*it.name, &*it.state, &*it.reason]).collect();
        let expected = [
            ["[sig-a] Pods run", "passed", ""],
            ["fall", "failed", "expected 1"],
            ["", "failed", "no nodes"],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_are_counted_by_their_group() {
        let outcome = |name: &str, state: &str| Outcome {
            name: name.into(),
            state: state.into(),
            reason: String::new(),
        };
        let outcomes = [
            outcome("[sig-node] Pods run", "passed"),
            outcome("[sig-node] Pods end", "timedout"),
            outcome("[sig-apps] Jobs", "passed"),
            outcome("[sig-cli] get", "skipped"),
        ];
        let found: Vec<_> = by_sig(&outcomes).into_iter().collect();
        assert_eq!(found, [("[sig-apps]", [1, 0]), ("[sig-node]", [1, 1])]);
    }

    #[test]
    fn a_reason_holds_for_the_patterns_below_it() {
        let found = parse_left_out("# needs a container\nlogs\nexec\n\n# needs a network\nDNS\n");
        let pairs: Vec<_> = found.iter().map(|(pattern, reason)| [&**pattern, &**reason]).collect();
        let expected =
            [["logs", "needs a container"], ["exec", "needs a container"], ["DNS", "needs a network"]];
        assert_eq!(pairs, expected);
    }
}
