//! The reference pages of the book are what the program itself prints: its help, and its page of metrics.
//!
//! `SETPOINT_WRITE_PAGES=1 cargo test -p setpoint --test up reference` writes them again.

use crate::harness::{SETPOINT, Up};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Between these lines a page is written by the test.
const BEGIN: &str = "<!-- written by `SETPOINT_WRITE_PAGES=1 cargo test -p setpoint --test up reference` -->";
const END: &str = "<!-- end of what is written -->";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)
}

/// The page as it is, and with this text between its marks.
fn shown_and_wanted(name: &str, text: &str) -> [String; 2] {
    let shown = fs::read_to_string(page(name)).unwrap();
    let (head, rest) = shown.split_once(BEGIN).expect("a line that says where the text begins");
    let (_, tail) = rest.split_once(END).expect("a line that says where the text ends");
    let wanted = format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", text.trim());
    [shown, wanted]
}

/// The page has this text between its marks; with the variable, it gets it.
fn check(name: &str, text: &str) {
    let [shown, wanted] = shown_and_wanted(name, text);
    if std::env::var_os("SETPOINT_WRITE_PAGES").is_some() {
        fs::write(page(name), &wanted).unwrap();
        return;
    }
    let first = wanted.lines().zip(shown.lines()).find(|(wanted, shown)| wanted != shown);
    assert!(wanted == shown, "docs/guide/{name} is not up to date; the first difference: {first:?}\n{BEGIN}");
}

fn help(words: &[&str]) -> String {
    let output = Command::new(SETPOINT).args(words).arg("--help").env("COLUMNS", "100").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The names below `Commands:` of a help text.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned));
    names.filter(|name| !name.is_empty() && name != "help").collect()
}

fn describe(words: &[&str], text: &mut String) {
    let help = help(words);
    let title = [&["setpoint"], words].concat().join(" ");
    text.push_str(&format!("## {title}\n\n```text\n{}\n```\n\n", help.trim()));
    for name in commands(&help) {
        describe(&[words, &[name.as_str()]].concat(), text);
    }
}

#[test]
fn reference_of_flags() {
    let mut text = String::new();
    describe(&[], &mut text);
    check("flags.md", &text);
}

/// A label is there once something has it: the first watches begin when the server is ready. So often the page is read.
const ATTEMPTS: usize = 50;

/// A family of metrics, as its page has it.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    labels: Vec<String>,
}

/// By name, in the order of the alphabet.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            current = name.to_owned();
            help.clone_into(&mut families.entry(current.clone()).or_default().help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
        } else if let Some((_, labels)) = line.split_once('{') {
            let labels = labels.split("\",").filter_map(|label| label.split('=').next());
            let known = &mut families.get_mut(&current).expect("a family before its samples").labels;
            for label in labels.filter(|label| *label != "le") {
                if !known.iter().any(|known| known == label) {
                    known.push(label.to_owned());
                }
            }
            known.sort();
        }
    }
    families
}

#[test]
fn reference_of_metrics() {
    let scratch = tempfile::tempdir().unwrap();
    let policy = scratch.path().join("policy.yaml");
    fs::write(&policy, "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}").unwrap();
    let audit = ["--ephemeral", "--audit-policy-file", "policy.yaml", "--audit-log-path", "audit.log"];
    let up = Up::start(&audit, scratch.path());
    let metrics = || {
        let mut command = Command::new(SETPOINT);
        command.args(["get", "--raw", "/metrics"]).env("KUBECONFIG", &up.kubeconfig);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        families(&String::from_utf8(output.stdout).unwrap())
    };
    let mut text = String::new();
    for _ in 0..ATTEMPTS {
        text = "| name | type | labels | help |\n|---|---|---|---|\n".to_owned();
        for (name, Family { kind, help, labels }) in metrics() {
            text.push_str(&format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", ")));
        }
        let [shown, wanted] = shown_and_wanted("metrics.md", &text);
        if shown == wanted {
            break;
        }
    }
    check("metrics.md", &text);
}
