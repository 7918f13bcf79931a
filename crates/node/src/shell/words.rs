//! Splits a shell script into tokens: words with what is expanded in them, connectors and redirections.

use std::{iter::Peekable, str::Chars};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;` or the end of a line.
    End,
    And,
    Or,
    Pipe,
    Background,
    /// The next word is the file that the output goes to.
    Redirect {
        is_error: bool,
        appends: bool,
    },
    /// Something that is not understood.
    Other,
}

pub(super) type Word = Vec<Piece>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// A quoted piece is never split into several words.
    pub(super) is_quoted: bool,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text(String),
    /// `$NAME`, and `${NAME:-default}`.
    Variable {
        name: String,
        default: Option<String>,
    },
    /// `$(( … ))`
    Arithmetic(String),
    /// `$( … )`
    Command(String),
    /// An expansion that is not understood, as it is written.
    Unknown(String),
}

/// The text of a word without quotes and expansions: only such a word can be a keyword.
pub(super) fn literal(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [Piece { is_quoted: false, content: Content::Text(text) }] => Some(text),
        _ => None,
    }
}

/// A word that stands for itself.
pub(super) fn quoted(text: &str) -> Word {
    vec![Piece { is_quoted: true, content: Content::Text(text.to_owned()) }]
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

pub(super) fn tokens(script: &str) -> Vec<Token> {
    let mut lexer = Lexer { letters: script.chars().peekable(), tokens: Vec::new(), word: None };
    while let Some(letter) = lexer.letters.next() {
        lexer.take(letter);
    }
    lexer.end_word();
    lexer.tokens
}

struct Lexer<'a> {
    letters: Peekable<Chars<'a>>,
    tokens: Vec<Token>,
    word: Option<Word>,
}

impl Lexer<'_> {
    fn take(&mut self, letter: char) {
        match letter {
            ' ' | '\t' | '\r' => self.end_word(),
            ';' if self.letters.next_if_eq(&';').is_some() => self.end(Token::Other),
            ';' | '\n' => self.end(Token::End),
            '&' if self.letters.next_if_eq(&'&').is_some() => self.end(Token::And),
            // `&>` sends the errors to the same file.
            '&' if self.letters.peek() == Some(&'>') => self.end_word(),
            '&' => self.end(Token::Background),
            '|' if self.letters.next_if_eq(&'|').is_some() => self.end(Token::Or),
            '|' => self.end(Token::Pipe),
            '(' | ')' | '<' => self.end(Token::Other),
            '>' => self.redirect(),
            '#' if self.word.is_none() => while self.letters.next_if(|it| *it != '\n').is_some() {},
            '\'' => {
                let text = self.until('\'');
                self.piece(true, Content::Text(text));
            }
            '"' => self.double_quoted(),
            '\\' => match self.letters.next() {
                Some('\n') => {}
                other => self.text(true, other.unwrap_or('\\')),
            },
            '$' => self.expansion(false),
            '`' => {
                let command = self.until('`');
                self.piece(false, Content::Command(command));
            }
            _ => self.text(false, letter),
        }
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(Token::Word));
    }

    fn end(&mut self, token: Token) {
        self.end_word();
        self.tokens.push(token);
    }

    fn text(&mut self, is_quoted: bool, letter: char) {
        let word = self.word.get_or_insert_default();
        match word.last_mut() {
            Some(Piece { is_quoted: same, content: Content::Text(text) }) if *same == is_quoted => {
                text.push(letter);
            }
            _ => word.push(Piece { is_quoted, content: Content::Text(letter.into()) }),
        }
    }

    fn piece(&mut self, is_quoted: bool, content: Content) {
        self.word.get_or_insert_default().push(Piece { is_quoted, content });
    }

    fn redirect(&mut self) {
        let number = self.word.as_ref().and_then(literal).filter(|it| it.len() == 1);
        let number = number.and_then(|it| it.parse::<u8>().ok());
        if number.is_some() {
            self.word = None;
        }
        let appends = self.letters.next_if_eq(&'>').is_some();
        // `2>&1` and `>&2`: both outputs go to the log.
        if self.letters.next_if_eq(&'&').is_some() {
            while self.letters.next_if(|it| it.is_ascii_digit() || *it == '-').is_some() {}
            return self.end_word();
        }
        self.end(Token::Redirect { is_error: number == Some(2), appends });
    }

    fn double_quoted(&mut self) {
        self.piece(true, Content::Text(String::new()));
        while let Some(letter) = self.letters.next() {
            match letter {
                '"' => return,
                '\\' => match self.letters.next_if(|it| matches!(it, '$' | '`' | '"' | '\\' | '\n')) {
                    Some('\n') => {}
                    other => self.text(true, other.unwrap_or('\\')),
                },
                '$' => self.expansion(true),
                '`' => {
                    let command = self.until('`');
                    self.piece(true, Content::Command(command));
                }
                _ => self.text(true, letter),
            }
        }
    }

    /// What follows a `$`.
    fn expansion(&mut self, is_quoted: bool) {
        let content = match self.letters.peek() {
            Some('(') => {
                self.letters.next();
                if self.letters.next_if_eq(&'(').is_some() {
                    let text = self.balanced(2);
                    Content::Arithmetic(text.strip_suffix(')').unwrap_or(&text).to_owned())
                } else {
                    Content::Command(self.balanced(1))
                }
            }
            Some('{') => {
                self.letters.next();
                braced(&self.until('}'))
            }
            Some('?') => {
                self.letters.next();
                Content::Variable { name: "?".to_owned(), default: None }
            }
            Some(it) if it.is_ascii_alphabetic() || *it == '_' => {
                let mut name = String::new();
                while let Some(letter) = self.letters.next_if(|it| it.is_ascii_alphanumeric() || *it == '_') {
                    name.push(letter);
                }
                Content::Variable { name, default: None }
            }
            Some(it) if it.is_ascii_digit() || "$#@*!-".contains(*it) => {
                Content::Unknown(format!("${}", self.letters.next().unwrap_or_default()))
            }
            _ => return self.text(is_quoted, '$'),
        };
        self.piece(is_quoted, content);
    }

    fn until(&mut self, end: char) -> String {
        self.letters.by_ref().take_while(|it| *it != end).collect()
    }

    /// The text before the parenthesis that closes so many open ones.
    fn balanced(&mut self, open: usize) -> String {
        let (mut open, mut quote, mut text) = (open, None, String::new());
        for letter in self.letters.by_ref() {
            match (quote, letter) {
                (Some(mark), _) if letter == mark => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(letter),
                (None, '(') => open += 1,
                (None, ')') => open -= 1,
                (None, _) => {}
            }
            if open == 0 {
                break;
            }
            text.push(letter);
        }
        text
    }
}

/// What is between `${` and `}`.
fn braced(text: &str) -> Content {
    let (name, default) = match text.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (text, None),
    };
    if is_name(name) && default.is_none_or(|it| !it.contains(['$', '`', '"', '\'', '\\'])) {
        Content::Variable { name: name.to_owned(), default: default.map(str::to_owned) }
    } else {
        Content::Unknown(format!("${{{text}}}"))
    }
}
