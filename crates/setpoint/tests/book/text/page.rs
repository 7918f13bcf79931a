//! README, the pages of the guide and the recipes, cut into files and commands; and the list of commands that no test runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A part of a page that a test acts on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A block below a line like "`web.yaml`:".
    File { name: String, text: String },
    /// A line after `$`, and what the page shows below it.
    Command { line: String, shown: Vec<String> },
    /// `^C` ends the `setpoint up` above it.
    Interrupt,
}

/// Pages whose commands are run one after the other, by the test of the same name.
pub(crate) const RUN: [&str; 9] = [
    "README.md",
    "docs/guide/everyday-commands.md",
    "docs/guide/install.md",
    "docs/guide/concepts.md",
    "docs/guide/production.md",
    "docs/guide/several-servers.md",
    "docs/guide/testing-api.md",
    "docs/recipes/README.md",
    "docs/recipes/go-envtest.md",
];

/// Commands of a page, by their beginning, that are not run as they stand, and why.
pub(crate) const EXCUSED: [(&str, &str, &str); 15] = [
    ("README.md", "setpoint new shop", "the suite `walk` runs these, with other names"),
    ("README.md", "setpoint create api", "the suite `walk` runs these, with other names"),
    ("README.md", "setpoint test", "the suite `walk` runs these, with other names"),
    ("README.md", "setpoint run", "the suite `walk` runs these, with other names"),
    ("docs/guide/first-operator.md", "", "its files are those of examples/greeting, which has tests"),
    ("docs/guide/new-project.md", "", "the suite `walk` runs these, with other names"),
    ("docs/guide/testing-api.md", "setpoint up", "the test starts it"),
    ("docs/guide/everyday-commands.md", "eval \"$(setpoint assets)\"", "it needs Go: recipes/go-envtest"),
    ("docs/guide/install.md", "git clone", "there is no network in tests"),
    ("docs/guide/install.md", "cargo install", "it compiles everything for release"),
    ("docs/guide/install.md", "cargo uninstall", "nothing was installed"),
    (
        "docs/guide/real-nodes.md",
        "",
        "it needs root, containerd and a kubelet; the suite `node_join` joins without them",
    ),
    ("docs/recipes/go-envtest.md", "go test", "it needs Go: recipes/go-envtest"),
    ("docs/recipes/helm.md", "", "recipes/helm/test.sh has these lines, and needs helm"),
    ("docs/recipes/kustomize.md", "", "recipes/kustomize/test.sh has these lines"),
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Why a command is not run; `None` if it is.
pub(crate) fn excuse(page: &str, line: &str) -> Option<&'static str> {
    let fits = |(of, start, _): &&(&str, &str, &str)| *of == page && line.starts_with(start);
    EXCUSED.iter().find(fits).map(|(_, _, reason)| *reason)
}

pub(crate) fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            if !line.is_empty() {
                before = line;
            }
            continue;
        };
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        match file_name(before) {
            Some(name) => {
                steps.push(Step::File { name: name.to_owned(), text: block.join("\n") + "\n" });
            }
            None if language == "console" => steps.extend(commands(&block)),
            None => {}
        }
        before = "";
    }
    steps
}

/// The name in a line that ends like "`web.yaml`:".
fn file_name(line: &str) -> Option<&str> {
    let name = line.strip_suffix("`:")?.rsplit('`').next()?;
    (name.contains('.') && !name.contains(' ')).then_some(name)
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(line), _) => steps.push(Step::Command { line: line.to_owned(), shown: Vec::new() }),
            (None, _) if *line == "^C" => steps.push(Step::Interrupt),
            // A long command goes on in the next line.
            (None, Some(Step::Command { line: command, shown }))
                if shown.is_empty() && command.ends_with('\\') =>
            {
                command.truncate(command.len() - 1);
                command.push_str(line.trim_start());
            }
            (None, Some(Step::Command { shown, .. })) => shown.push((*line).to_owned()),
            (None, _) => {}
        }
    }
    for step in &mut steps {
        if let Step::Command { shown, .. } = step {
            while shown.last().is_some_and(|line| line.trim().is_empty()) {
                shown.pop();
            }
        }
    }
    steps
}

fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs/guide", "docs/recipes"] {
        let names = fs::read_dir(root().join(folder)).unwrap();
        pages.extend(
            names.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap())),
        );
    }
    pages.sort();
    pages
}

fn lines_of(page: &str) -> Vec<String> {
    let steps = steps(&read(page)).into_iter();
    steps.filter_map(|step| if let Step::Command { line, .. } = step { Some(line) } else { None }).collect()
}

#[test]
fn every_command_of_readme_and_the_book_is_run_or_excused() {
    let pages = pages();
    for page in &pages {
        let is_run = RUN.contains(&page.as_str());
        assert!(!read(page).contains("```sh"), "{page}: commands are in `console` blocks, which tests run");
        for line in lines_of(page) {
            assert!(is_run || excuse(page, &line).is_some(), "no test runs `{line}` of {page}");
        }
    }
    for (page, start, _) in EXCUSED {
        let lines = lines_of(page);
        assert!(lines.iter().any(|line| line.starts_with(start)), "{page} has no command `{start}`");
    }
    for page in RUN {
        assert!(!lines_of(page).is_empty(), "{page} has no commands");
    }
}

#[test]
fn a_page_is_cut_into_files_and_commands() {
    let page = "\
Text with `code`.

`web.yaml`:

```yaml
a: 1
```

```console
$ setpoint up
Setpoint is up.
^C
$ kubectl get \\
    pods
NAME
…

$ true
```

```rust
fn main() {}
```
";
    let command = |line: &str, shown: &[&str]| Step::Command {
        line: line.to_owned(),
        shown: shown.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(
        steps(page),
        [
            Step::File { name: "web.yaml".to_owned(), text: "a: 1\n".to_owned() },
            command("setpoint up", &["Setpoint is up."]),
            Step::Interrupt,
            command("kubectl get pods", &["NAME", "…"]),
            command("true", &[]),
        ]
    );
}
