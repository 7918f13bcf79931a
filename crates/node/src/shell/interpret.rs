//! Carries out the commands of a shell script, as far as they are understood.

use super::{
    End, ShellRun, Surroundings,
    files::Files,
    grammar::{self, Command, Connector, Item, List, Target},
    simple,
    words::{Content, Piece, Word, is_name, literal},
};
use crate::image;
use std::{collections::BTreeMap, time::Duration};

/// A run is followed for so many commands: it is computed anew for each plan of its pod.
const MOST_STEPS: usize = 1_000;
/// A command is so long at most after expansion: variables may grow with each round of a loop.
const MOST_TEXT: usize = 16 * 1024;
/// So much of its log is kept.
const MOST_OUTPUT: usize = 256 * 1024;
/// Bash: $RANDOM is below this.
const RANDOM_LIMIT: u64 = 32_768;
/// Kubernetes: the default of terminationMessagePath.
const TERMINATION_LOG: &str = "/dev/termination-log";
const NOWHERE: &str = "/dev/null";
const LOGS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/proc/1/fd/1", "/proc/1/fd/2"];

/// Why a list of commands is left before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Exit(i32),
    Never,
    Unknown,
    OutOfSteps,
    Break,
    Continue,
}

pub(super) struct Shell<'a> {
    around: &'a Surroundings,
    /// A variable without a value has an unknown one.
    pub(super) variables: BTreeMap<String, Option<String>>,
    pub(super) files: Files,
    pub(super) now: Duration,
    pub(super) status: i32,
    pub(super) ends_on_failure: bool,
    /// Within `$( … )`: the output is a value.
    pub(super) is_captured: bool,
    lines: Vec<(Duration, String)>,
    message: Option<String>,
    /// Within the condition of a branch or loop: failures do not end the script.
    is_condition: bool,
    /// The length of all output.
    written: usize,
    steps: usize,
    /// How deep the present command is nested.
    depth: usize,
    draws: u64,
}

/// Words after expansion.
#[derive(Default)]
pub(super) struct Expanded {
    pub(super) fields: Vec<String>,
    /// Whether something in them is not known, and left as it is written.
    pub(super) is_unknown: bool,
}

/// What a list of commands does.
pub(super) fn run(list: &List, around: &Surroundings, ends_on_failure: bool) -> ShellRun {
    let mut shell = Shell {
        around,
        variables: around.variables.clone(),
        files: Files::new(&around.files, &around.folders),
        now: Duration::ZERO,
        status: 0,
        ends_on_failure,
        is_captured: false,
        lines: Vec::new(),
        message: None,
        is_condition: false,
        written: 0,
        steps: 0,
        depth: 0,
        draws: 0,
    };
    let end = match shell.list(list) {
        Ok(()) if list.is_empty() => End::Unknown,
        Ok(()) | Err(Interrupt::Break | Interrupt::Continue) => End::At(shell.now, shell.status),
        Err(Interrupt::Exit(code)) => End::At(shell.now, code),
        Err(Interrupt::Never) => End::Never,
        Err(Interrupt::Unknown | Interrupt::OutOfSteps) => End::Unknown,
    };
    ShellRun { lines: shell.lines, message: shell.message, changes: shell.files.changes, end }
}

impl Shell<'_> {
    fn list(&mut self, list: &[Item]) -> Result<(), Interrupt> {
        for (at, item) in list.iter().enumerate() {
            let is_skipped = match item.connector {
                Connector::Always => false,
                Connector::And => self.status != 0,
                Connector::Or => self.status == 0,
            };
            if is_skipped {
                continue;
            }
            self.command(&item.command)?;
            if item.is_negated {
                self.status = i32::from(self.status == 0);
            }
            let is_last = list.get(at + 1).is_none_or(|next| next.connector == Connector::Always);
            let is_checked = is_last && !item.is_negated && !self.is_condition;
            if self.ends_on_failure && self.status != 0 && is_checked {
                return Err(Interrupt::Exit(self.status));
            }
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result<(), Interrupt> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(Interrupt::OutOfSteps);
        }
        self.depth += 1;
        let result = self.command_inside(command);
        self.depth -= 1;
        result
    }

    fn command_inside(&mut self, command: &Command) -> Result<(), Interrupt> {
        match command {
            Command::Simple { words, target } => self.simple(words, target.as_ref()),
            Command::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.condition(condition)?;
                    if self.status == 0 {
                        return self.list(body);
                    }
                }
                self.status = 0;
                self.list(otherwise)
            }
            Command::Loop { is_until, condition, body } => self.repeat(*is_until, condition, body),
            Command::For { name, words, body } => self.each(name, words, body),
            Command::Group(list) => self.list(list),
            Command::Unknown => Err(Interrupt::Unknown),
        }
    }

    fn condition(&mut self, condition: &[Item]) -> Result<(), Interrupt> {
        let outer = std::mem::replace(&mut self.is_condition, true);
        let result = self.list(condition);
        self.is_condition = outer;
        result
    }

    /// A loop that is still at work when the steps are used up is one that never ends.
    fn repeat(&mut self, is_until: bool, condition: &[Item], body: &[Item]) -> Result<(), Interrupt> {
        let first = condition.first().and_then(first_word);
        let is_endless = matches!((is_until, first), (false, Some("true" | ":")) | (true, Some("false")));
        let waits = is_endless || (!is_until && first == Some("["));
        loop {
            let before = (self.lines.len(), self.files.changes.len(), self.variables.clone());
            match self.condition(condition) {
                Err(Interrupt::OutOfSteps) => return Err(Interrupt::Never),
                Err(Interrupt::Unknown) if waits => return Err(Interrupt::Never),
                result => result?,
            }
            if (self.status == 0) == is_until {
                self.status = 0;
                return Ok(());
            }
            match self.list(body) {
                Ok(()) | Err(Interrupt::Continue) => {}
                Err(Interrupt::Break) => {
                    self.status = 0;
                    return Ok(());
                }
                Err(Interrupt::OutOfSteps) => return Err(Interrupt::Never),
                Err(Interrupt::Unknown) if is_endless => return Err(Interrupt::Never),
                Err(other) => return Err(other),
            }
            let is_idle = before.0 == self.lines.len()
                && before.1 == self.files.changes.len()
                && before.2 == self.variables;
            if is_idle && self.draws == 0 {
                return Err(Interrupt::Never);
            }
        }
    }

    fn each(&mut self, name: &str, words: &[Word], body: &[Item]) -> Result<(), Interrupt> {
        let Expanded { fields, is_unknown } = self.expand(words, true)?;
        if is_unknown {
            return Err(Interrupt::Unknown);
        }
        self.status = 0;
        for field in fields {
            self.variables.insert(name.to_owned(), Some(field));
            match self.list(body) {
                Err(Interrupt::Break) => break,
                Ok(()) | Err(Interrupt::Continue) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn simple(&mut self, words: &[Word], target: Option<&Target>) -> Result<(), Interrupt> {
        let is_declaration =
            words.first().and_then(literal).is_some_and(|it| matches!(it, "export" | "readonly"));
        let assigned =
            words.iter().skip(usize::from(is_declaration)).take_while(|it| assignment(it).is_some());
        let assigned = assigned.count();
        if is_declaration || assigned > 0 {
            if !is_declaration && assigned < words.len() {
                return Err(Interrupt::Unknown);
            }
            self.status = 0;
            return words
                .iter()
                .filter_map(assignment)
                .try_for_each(|(name, value)| self.assign(name, &value));
        }
        let splits = words.first().and_then(literal) != Some("[[");
        let expanded = self.expand(words, splits)?;
        let target = match target {
            None => None,
            Some(Target { file, appends }) => {
                let Expanded { fields, is_unknown } = self.expand(std::slice::from_ref(file), false)?;
                let file = if is_unknown { NOWHERE.to_owned() } else { fields.concat() };
                Some((file, *appends))
            }
        };
        simple::carry_out(self, &expanded, target.as_ref())
    }

    fn assign(&mut self, name: &str, value: &Word) -> Result<(), Interrupt> {
        let Expanded { fields, is_unknown } = self.expand(std::slice::from_ref(value), false)?;
        self.variables.insert(name.to_owned(), Some(fields.concat()).filter(|_| !is_unknown));
        Ok(())
    }

    /// Writes text to a file or the log.
    pub(super) fn output(&mut self, text: &str, target: Option<&(String, bool)>) {
        match target {
            Some((file, _)) if file == TERMINATION_LOG => {
                self.message = Some(text.trim_end_matches('\n').to_owned());
            }
            Some((file, _)) if file == NOWHERE => {}
            Some((file, appends)) if !LOGS.contains(&file.as_str()) => {
                self.files.write(self.now, file, text, *appends);
            }
            _ => {
                self.written = self.written.saturating_add(text.len());
                if self.written > MOST_OUTPUT {
                    return;
                }
                let text = text.strip_suffix('\n').unwrap_or(text);
                self.lines.extend(text.split('\n').map(|line| (self.now, line.to_owned())));
            }
        }
    }

    pub(super) fn expand(&mut self, words: &[Word], splits: bool) -> Result<Expanded, Interrupt> {
        let (mut all, mut length) = (Expanded::default(), 0usize);
        for word in words {
            // The last field is not finished: the next piece may add to it.
            let mut field: Option<String> = None;
            for Piece { is_quoted, content } in word {
                let (text, is_known) = self.text_of(content)?;
                all.is_unknown |= !is_known;
                length = length.saturating_add(text.len());
                if length > MOST_TEXT {
                    return Err(Interrupt::Unknown);
                }
                if *is_quoted || !splits || matches!(content, Content::Text(_)) {
                    field.get_or_insert_default().push_str(&text);
                    continue;
                }
                if text.starts_with(char::is_whitespace) {
                    all.fields.extend(field.take());
                }
                let mut parts = text.split_whitespace();
                if let Some(first) = parts.next() {
                    field.get_or_insert_default().push_str(first);
                }
                for part in parts {
                    all.fields.extend(field.replace(part.to_owned()));
                }
                if text.ends_with(char::is_whitespace) {
                    all.fields.extend(field.take());
                }
            }
            if !splits {
                field.get_or_insert_default();
            }
            all.fields.extend(field);
        }
        Ok(all)
    }

    /// The text of a piece; as it is written if it is not known.
    fn text_of(&mut self, content: &Content) -> Result<(String, bool), Interrupt> {
        let (value, written) = match content {
            Content::Text(text) => return Ok((text.clone(), true)),
            Content::Unknown(text) => return Ok((text.clone(), false)),
            Content::Variable { name, default } => {
                let value = self.variable(name);
                let is_empty = value.as_ref().is_some_and(String::is_empty);
                let value = if is_empty { default.clone().or(value) } else { value };
                (value, format!("${name}"))
            }
            Content::Arithmetic(text) => {
                let value = super::arithmetic::value(text, &mut |name| self.variable(name));
                (value.map(|it| it.to_string()), format!("$(({text}))"))
            }
            Content::Command(text) => (self.capture(text)?, format!("$({text})")),
        };
        Ok(value.map_or((written, false), |value| (value, true)))
    }

    /// The value of a variable; `None` if it is not known.
    fn variable(&mut self, name: &str) -> Option<String> {
        match (name, self.variables.get(name)) {
            ("?", _) => Some(self.status.to_string()),
            (_, Some(value)) => value.clone(),
            ("RANDOM", None) => {
                self.draws += 1;
                Some((image::number(&(self.around.seed, self.draws)) % RANDOM_LIMIT).to_string())
            }
            // What the image or the cluster sets.
            ("PATH" | "HOME" | "PWD" | "USER" | "SHELL" | "PPID" | "UID", None) => None,
            (_, None) if self.around.has_other_variables => None,
            (_, None) if name.contains("_SERVICE_") || name.contains("_PORT_") => None,
            (_, None) => Some(String::new()),
        }
    }

    /// What a command writes, as a value; `None` if that is not known.
    fn capture(&mut self, script: &str) -> Result<Option<String>, Interrupt> {
        let list = grammar::parse(script, self.depth);
        let outer = (std::mem::take(&mut self.lines), self.variables.clone(), self.is_captured);
        let outer_ends_on_failure = std::mem::take(&mut self.ends_on_failure);
        self.is_captured = true;
        let result = self.list(&list);
        self.ends_on_failure = outer_ends_on_failure;
        let lines = std::mem::replace(&mut self.lines, outer.0);
        (self.variables, self.is_captured) = (outer.1, outer.2);
        match result {
            Ok(()) | Err(Interrupt::Break | Interrupt::Continue) => {}
            Err(Interrupt::Exit(code)) => self.status = code,
            Err(Interrupt::Unknown) => return Ok(None),
            Err(other) => return Err(other),
        }
        let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        Ok(Some(lines.join("\n").trim_end_matches('\n').to_owned()))
    }
}

fn first_word(item: &Item) -> Option<&str> {
    match &item.command {
        Command::Simple { words, .. } if !item.is_negated => words.first().and_then(literal),
        _ => None,
    }
}

/// The name and value of a word as `NAME=value`.
fn assignment(word: &Word) -> Option<(&str, Word)> {
    let [Piece { is_quoted: false, content: Content::Text(text) }, rest @ ..] = word.as_slice() else {
        return None;
    };
    let (name, value) = text.split_once('=').filter(|(name, _)| is_name(name))?;
    let first = Piece { is_quoted: true, content: Content::Text(value.to_owned()) };
    Some((name, [&[first], rest].concat()))
}
