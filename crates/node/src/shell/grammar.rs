//! Reads the tokens of a shell script as commands: simple ones, branches and loops.

use super::words::{self, Token, Word, literal};
use std::{iter::Peekable, vec::IntoIter};

/// More is not what jobs and tests run from their command line.
const MOST_STATEMENTS: usize = 500;
/// So deep may branches, loops and `$( … )` be nested; it bounds the recursion.
pub(super) const MOST_NESTING: usize = 16;

pub(super) type List = Vec<Item>;

/// A command of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) connector: Connector,
    pub(super) is_negated: bool,
    pub(super) command: Command,
}

impl Item {
    /// A command that is not understood.
    pub(super) fn unknown() -> Item {
        Item { connector: Connector::Always, is_negated: false, command: Command::Unknown }
    }
}

/// When a command runs, by the status of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connector {
    Always,
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Simple {
        words: Vec<Word>,
        target: Option<Target>,
    },
    /// Conditions with what is done if they hold.
    If {
        branches: Vec<(List, List)>,
        otherwise: List,
    },
    Loop {
        is_until: bool,
        condition: List,
        body: List,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: List,
    },
    Group(List),
    Unknown,
}

/// The file that the output of a command goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) file: Word,
    pub(super) appends: bool,
}

/// The commands of a script; the first one that cannot be read is the last one, and unknown.
pub(super) fn parse(script: &str, depth: usize) -> List {
    let tokens = words::tokens(script).into_iter().peekable();
    Parser { tokens, statements: 0, is_lost: false }.list(&[], depth)
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
    statements: usize,
    is_lost: bool,
}

impl Parser {
    fn list(&mut self, ends: &[&str], depth: usize) -> List {
        let (mut items, mut connector) = (List::new(), Connector::Always);
        loop {
            self.skip_ends();
            if self.is_lost
                || self.tokens.peek().is_none()
                || self.keyword().is_some_and(|it| ends.contains(&it))
            {
                return items;
            }
            let mut item = self.pipeline(connector, depth);
            connector = match self.tokens.peek() {
                None | Some(Token::End) => Connector::Always,
                Some(Token::And) => Connector::And,
                Some(Token::Or) => Connector::Or,
                Some(Token::Background) => {
                    item.command = Command::Unknown;
                    Connector::Always
                }
                Some(_) => {
                    item.command = self.lose();
                    Connector::Always
                }
            };
            self.tokens.next();
            items.push(item);
        }
    }

    /// A command, which is unknown if its output goes into another one.
    fn pipeline(&mut self, connector: Connector, depth: usize) -> Item {
        let mut is_negated = false;
        while self.keyword() == Some("!") {
            self.tokens.next();
            is_negated = !is_negated;
        }
        let mut command = self.command(depth);
        while !self.is_lost && self.tokens.next_if_eq(&Token::Pipe).is_some() {
            self.skip_ends();
            self.command(depth);
            command = Command::Unknown;
        }
        Item { connector, is_negated, command }
    }

    fn command(&mut self, depth: usize) -> Command {
        self.statements += 1;
        if self.statements > MOST_STATEMENTS || depth >= MOST_NESTING {
            return self.lose();
        }
        let compound = match self.keyword() {
            Some("if") => self.branches(depth + 1),
            Some("while") => self.repeat(false, depth + 1),
            Some("until") => self.repeat(true, depth + 1),
            Some("for") => self.each(depth + 1),
            Some("{") => self.group(depth + 1),
            Some("case" | "function" | "select" | "then" | "else" | "elif" | "fi" | "do" | "done" | "}") => {
                None
            }
            _ => self.simple(),
        };
        compound.unwrap_or_else(|| self.lose())
    }

    fn simple(&mut self) -> Option<Command> {
        let (mut words, mut target) = (Vec::new(), None);
        while let Some(token) =
            self.tokens.next_if(|it| matches!(it, Token::Word(_) | Token::Redirect { .. }))
        {
            match token {
                Token::Word(word) => words.push(word),
                Token::Redirect { is_error, appends } => {
                    let Some(Token::Word(file)) = self.tokens.next() else { return None };
                    if !is_error {
                        target = Some(Target { file, appends });
                    }
                }
                _ => return None,
            }
        }
        (!words.is_empty() || target.is_some()).then_some(Command::Simple { words, target })
    }

    fn branches(&mut self, depth: usize) -> Option<Command> {
        let (mut branches, mut otherwise) = (Vec::new(), List::new());
        self.tokens.next();
        loop {
            let condition = self.list(&["then"], depth);
            self.expect("then")?;
            let body = self.list(&["elif", "else", "fi"], depth);
            branches.push((condition, body));
            match self.keyword()? {
                "elif" => drop(self.tokens.next()),
                "else" => {
                    self.tokens.next();
                    otherwise = self.list(&["fi"], depth);
                }
                _ => {}
            }
            if self.keyword() == Some("fi") {
                self.tokens.next();
                return Some(Command::If { branches, otherwise });
            }
        }
    }

    fn repeat(&mut self, is_until: bool, depth: usize) -> Option<Command> {
        self.tokens.next();
        let condition = self.list(&["do"], depth);
        let body = self.body(depth)?;
        Some(Command::Loop { is_until, condition, body })
    }

    fn each(&mut self, depth: usize) -> Option<Command> {
        self.tokens.next();
        let name = self.keyword().filter(|it| words::is_name(it))?.to_owned();
        self.tokens.next();
        self.expect("in")?;
        let Some(Command::Simple { words, target: None }) = self.simple() else { return None };
        self.skip_ends();
        let body = self.body(depth)?;
        Some(Command::For { name, words, body })
    }

    fn body(&mut self, depth: usize) -> Option<List> {
        self.expect("do")?;
        let body = self.list(&["done"], depth);
        self.expect("done")?;
        Some(body)
    }

    fn group(&mut self, depth: usize) -> Option<Command> {
        self.tokens.next();
        let list = self.list(&["}"], depth);
        self.expect("}")?;
        Some(Command::Group(list))
    }

    fn keyword(&mut self) -> Option<&str> {
        match self.tokens.peek()? {
            Token::Word(word) => literal(word),
            _ => None,
        }
    }

    fn expect(&mut self, keyword: &str) -> Option<()> {
        let is_there = !self.is_lost && self.keyword() == Some(keyword);
        is_there.then(|| drop(self.tokens.next()))
    }

    fn skip_ends(&mut self) {
        while self.tokens.next_if_eq(&Token::End).is_some() {}
    }

    fn lose(&mut self) -> Command {
        self.is_lost = true;
        Command::Unknown
    }
}
