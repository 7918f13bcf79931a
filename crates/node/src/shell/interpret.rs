//! Carries out the commands of a shell script, as far as they are understood.

mod expansion;

pub(super) use expansion::Expanded;

use super::{
    End, ShellRun, Surroundings,
    files::Files,
    grammar::{Command, Connector, Item, List, Target},
    log_lines::LogLines,
    simple,
    variables::Scope,
    words::{Content, Piece, Word, is_name, literal},
};
use crate::budget::{self, Budget, OverBudget, STEP};
use std::time::Duration;

/// A run is followed for so many commands: it is computed anew for each plan of its pod.
const MOST_STEPS: usize = 1_000;
const NOWHERE: &str = "/dev/null";
const LOGS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/proc/1/fd/1", "/proc/1/fd/2"];

/// Why a list of commands is left before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Exit(i32),
    Never,
    Unknown,
    OutOfSteps,
    OverBudget,
    Break,
    Continue,
}

impl From<OverBudget> for Interrupt {
    fn from(_: OverBudget) -> Interrupt {
        Interrupt::OverBudget
    }
}

pub(super) struct Shell<'a> {
    seed: Option<u64>,
    has_other_variables: bool,
    pub(super) variables: Scope<'a>,
    pub(super) files: Files<'a>,
    pub(super) now: Duration,
    pub(super) status: i32,
    pub(super) ends_on_failure: bool,
    /// Within `$( … )`: the output is a value.
    pub(super) captured: Option<Vec<String>>,
    log: LogLines,
    termination_log: &'a str,
    message: Option<String>,
    /// Within the condition of a branch or loop: failures do not end the script.
    is_condition: bool,
    /// How often something was written to the log, or to what captures it.
    outputs: usize,
    steps: usize,
    /// How deep the present command is nested.
    depth: usize,
    draws: u64,
    pub(super) budget: &'a Budget,
}

/// What a list of commands does.
pub(super) fn run(list: &List, around: Surroundings<'_>, ends_on_failure: bool, budget: &Budget) -> ShellRun {
    let mut shell = Shell {
        seed: around.seed,
        has_other_variables: around.has_other_variables,
        variables: Scope::new(around.variables, budget),
        files: Files::new(around.files, around.folders, budget),
        now: Duration::ZERO,
        status: 0,
        ends_on_failure,
        captured: None,
        log: LogLines::default(),
        termination_log: around.termination_log,
        message: None,
        is_condition: false,
        outputs: 0,
        steps: 0,
        depth: 0,
        draws: 0,
        budget,
    };
    let end = match shell.list(list) {
        Ok(()) if list.is_empty() => End::Unknown,
        Ok(()) | Err(Interrupt::Break | Interrupt::Continue) => End::At(shell.now, shell.status),
        Err(Interrupt::Exit(code)) => End::At(shell.now, code),
        Err(Interrupt::Never) => End::Never,
        Err(Interrupt::Unknown | Interrupt::OutOfSteps) => End::Unknown,
        Err(Interrupt::OverBudget) => {
            shell.log.end_with(shell.now, budget::MESSAGE);
            End::At(shell.now, budget::EXIT_CODE)
        }
    };
    let changes = shell.files.into_changes();
    ShellRun { lines: shell.log.into_lines(), message: shell.message, changes, end }
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
        self.budget.charge(STEP)?;
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(Interrupt::OutOfSteps);
        }
        self.depth += 1;
        let result = self.command_inside(command);
        self.depth -= 1;
        if self.budget.is_exceeded() { Err(Interrupt::OverBudget) } else { result }
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
            let before = self.visible_changes();
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
            if before == self.visible_changes() && self.draws == 0 {
                return Err(Interrupt::Never);
            }
        }
    }

    /// Grows with whatever a later round of a loop may depend on.
    fn visible_changes(&self) -> (usize, usize, usize) {
        (self.outputs, self.files.writes, self.variables.changes)
    }

    fn each(&mut self, name: &str, words: &[Word], body: &[Item]) -> Result<(), Interrupt> {
        let Expanded { fields, is_unknown } = self.expand(words, true)?;
        if is_unknown {
            return Err(Interrupt::Unknown);
        }
        self.status = 0;
        for field in fields {
            self.variables.set(name, Some(field))?;
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
            return words.iter().filter_map(assignment).try_for_each(|assignment| self.assign(&assignment));
        }
        let splits = words.first().and_then(literal) != Some("[[");
        let expanded = self.expand(words, splits)?;
        let target = match target {
            None => None,
            Some(Target { file, appends }) => {
                let file = self.joined("", file)?.unwrap_or_else(|| NOWHERE.to_owned());
                Some((file, *appends))
            }
        };
        simple::carry_out(self, &expanded, target.as_ref())
    }

    fn assign(&mut self, assignment: &Assignment<'_>) -> Result<(), Interrupt> {
        let value = self.joined(assignment.start, assignment.rest)?;
        Ok(self.variables.set(assignment.name, value)?)
    }

    /// Writes text to a file or the log.
    pub(super) fn output(&mut self, text: &str, target: Option<&(String, bool)>) -> Result<(), Interrupt> {
        self.budget.charge(STEP + text.len())?;
        match target {
            Some((file, _)) if file == self.termination_log => {
                self.message = Some(text.trim_end_matches('\n').to_owned());
            }
            Some((file, _)) if file == NOWHERE => {}
            Some((file, appends)) if !LOGS.contains(&file.as_str()) => {
                if !self.files.write(self.now, file, text, *appends)? {
                    self.status = 1;
                }
            }
            _ => {
                self.outputs += 1;
                let text = text.strip_suffix('\n').unwrap_or(text);
                if let Some(captured) = &mut self.captured {
                    captured.push(text.to_owned());
                    return Ok(());
                }
                for line in text.split('\n') {
                    self.budget.charge(STEP)?;
                    self.log.push(self.now, line);
                }
            }
        }
        Ok(())
    }
}

fn first_word(item: &Item) -> Option<&str> {
    match &item.command {
        Command::Simple { words, .. } if !item.is_negated => words.first().and_then(literal),
        _ => None,
    }
}

/// A word as `NAME=value`.
struct Assignment<'a> {
    name: &'a str,
    /// The value up to its first expansion or quote.
    start: &'a str,
    rest: &'a [Piece],
}

fn assignment(word: &Word) -> Option<Assignment<'_>> {
    let [Piece { is_quoted: false, content: Content::Text(text) }, rest @ ..] = word.as_slice() else {
        return None;
    };
    let (name, start) = text.split_once('=').filter(|(name, _)| is_name(name))?;
    Some(Assignment { name, start, rest })
}
