//! Splits a shell script into statements, and these into words.

/// One simple command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) connector: Connector,
    pub(super) words: Vec<String>,
    /// The file that its output goes to.
    pub(super) target: Option<String>,
}

/// When a statement runs, by the status of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connector {
    Always,
    And,
    Or,
}

/// A statement with this word has an unknown effect: it stands for pipes and the background.
const UNKNOWN: &str = "|";

pub(super) fn statements(script: &str) -> Vec<Statement> {
    let mut reader = Reader { done: Vec::new(), words: Vec::new(), word: None, connector: Connector::Always };
    let mut letters = script.chars().peekable();
    let mut quote = None;
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"') | None, '\\') => reader.push(letters.next().unwrap_or('\\')),
            (Some(_), _) => reader.push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                reader.word.get_or_insert_default();
            }
            (None, ';' | '\n') => reader.end(Connector::Always),
            (None, '&') if letters.next_if_eq(&'&').is_some() => reader.end(Connector::And),
            (None, '|') if letters.next_if_eq(&'|').is_some() => reader.end(Connector::Or),
            // `2>&1` joins two outputs and is no background.
            (None, '&') if reader.word.as_deref().is_some_and(|word| word.ends_with('>')) => reader.push('&'),
            (None, '&' | '|') => {
                reader.end_word();
                reader.words.insert(0, UNKNOWN.to_owned());
            }
            (None, ' ' | '\t') => reader.end_word(),
            (None, _) => reader.push(letter),
        }
    }
    reader.end(Connector::Always);
    reader.done
}

struct Reader {
    done: Vec<Statement>,
    words: Vec<String>,
    word: Option<String>,
    connector: Connector,
}

impl Reader {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    /// Ends a statement; `next` connects it with the following one.
    fn end(&mut self, next: Connector) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            let (words, target) = redirected(words);
            self.done.push(Statement { connector: self.connector, words, target });
        }
        self.connector = next;
    }
}

/// Takes the redirections out of a statement.
fn redirected(words: Vec<String>) -> (Vec<String>, Option<String>) {
    let (mut kept, mut target) = (Vec::new(), None);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "2>&1" | "1>&2" | ">&2" => {}
            ">" | ">>" => target = words.next(),
            _ => match word.strip_prefix(">>").or_else(|| word.strip_prefix('>')) {
                Some(file) => target = Some(file.to_owned()),
                None => kept.push(word),
            },
        }
    }
    (kept, target)
}
