//! What developers run: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask bench …`, `cargo xtask fuzz …` and others.

#![expect(clippy::print_stdout, reason = "a command-line program")]
#![expect(clippy::disallowed_methods, reason = "it waits for other programs, in real time")]

mod bench;
mod cluster;
mod conformance;
mod dependencies;
mod examples;
mod fuzz;
mod images;
mod interop;
mod licences;
mod map;
mod metadata;
mod real_node;
mod recipes;
mod rust_version;
mod simulate;
mod size;
mod source;
mod steps;
mod suites;
mod test;
mod tidy;
mod tools;
mod twin;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test           format, lints, the dependency table, tidy, every test, then the tests against real programs
  tidy           rules of style and structure that the compiler does not know; --lower brings the excuses of
                 xtask/tidy-excuses.txt down to what is still there
  map            crates, modules and journeys as Markdown; --write puts them into ARCHITECTURE.md, --check compares
  licences       the dependencies and their licences as Markdown; --write puts them into docs/licences.md
  bench store    the store beside the bare disk
  bench server   the API server beside a bare hyper + rustls server; with names, only those parts: starts, get,
                 list, create, apply, watch, memory
  bench definitions  the cost of custom resource definitions
  bench admission    the cost of RBAC rules, webhooks and policies per request
  bench attacks      the cost of hostile requests; --binary PATH, once or more, for other builds, --only TEXT
  bench growth       whether the work for a request grows faster than its size, for every list of every kind
  bench operator     the operator framework next to kube-rs's runtime and controller-runtime; a number sets how
                     many objects
  bench controllers  the control loops next to kube-controller-manager and kube-scheduler; a number is the size of
                     the work in percent
  bench forks        time and memory of 1,000 forks of a cluster of 10,000 objects; numbers choose others; fails beyond a
                     goal
  bench size         the size of the release binary, its start and its idle memory; fails beyond a limit
  interop [PROGRAM …]  builds official programs of Kubernetes (all, or those named) into target/tools/bin
  conformance    the official conformance tests against a fresh Setpoint; --focus RE, --skip RE,
                 --with-real-controllers, --against setpoint|etcd|real, --everything also runs those that need containers;
                 --procs N: so many tests at a time;
                 --with-real-nodes: with containerd, kubelet and kube-proxy on this machine, as root
  suites [NAME …]  third-party suites: controller-runtime, cluster-api, client-go; --against memory|etcd|real
  recipes [NAME …]  the tests of recipes/, one for each language and tool: python, kopf, node, go-client, go-envtest,
                 helm, kustomize, java, rust, ci; SETPOINT_BINARY names another build
  fuzz [TARGET]  searches for an input that breaks a target, by default all; --minutes N for each
  twin           the real kube-apiserver and Setpoint side by side on generated requests; --minutes N, --seed S;
                 --controllers: the real control loops and Setpoint's own on generated workloads
  simulate       random workloads under random faults in virtual time; --seeds N (10,000), --from S
  tools          prints the paths of third-party programs that tests use, and fetches missing ones";

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["test"] => test::run(),
        ["tidy", ref arguments @ ..] => tidy::run(arguments),
        ["map", ref arguments @ ..] => map::run(arguments),
        ["licences", ref arguments @ ..] => licences::run(arguments),
        ["bench", subject, ref parts @ ..] => bench::run(subject, parts),
        ["interop", ref names @ ..] => interop::run(names),
        ["conformance", ref arguments @ ..] => conformance::run(arguments),
        ["suites", ref arguments @ ..] => suites::run(arguments),
        ["recipes", ref names @ ..] => recipes::run(names),
        ["fuzz", ref arguments @ ..] => fuzz::run(arguments),
        ["simulate", ref arguments @ ..] => simulate::run(arguments),
        ["twin", ref arguments @ ..] => twin::run(arguments),
        ["tools"] => tools::show(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("unknown command: {}\n\n{USAGE}", arguments.join(" ")),
    }
}
