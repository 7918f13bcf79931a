//! Expands the words of a shell script: variables, `$(( … ))` and `$( … )`.

use super::{Interrupt, Shell};
use crate::{
    budget::{READ, STEP},
    image,
    shell::{
        arithmetic, grammar,
        words::{Content, Piece, Word},
    },
};

/// A command is so long at most after expansion: variables may grow with each round of a loop.
const MOST_TEXT: usize = 16 * 1024;
/// Bash: $RANDOM is below this.
const RANDOM_LIMIT: u64 = 32_768;

/// Words after expansion.
#[derive(Default)]
pub(in crate::shell) struct Expanded {
    pub(in crate::shell) fields: Vec<String>,
    /// Whether something in them is not known, and left as it is written.
    pub(in crate::shell) is_unknown: bool,
}

impl Shell<'_> {
    /// One text and the pieces of a word after it, never split; `None` if it is not known.
    pub(super) fn joined(&mut self, start: &str, rest: &[Piece]) -> Result<Option<String>, Interrupt> {
        self.budget.charge(start.len())?;
        let (mut whole, mut is_unknown) = (start.to_owned(), false);
        for piece in rest {
            let (text, is_known) = self.text_of(&piece.content)?;
            is_unknown |= !is_known;
            whole.push_str(&text);
            if whole.len() > MOST_TEXT {
                return Err(Interrupt::Unknown);
            }
        }
        Ok(Some(whole).filter(|_| !is_unknown))
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
                    self.budget.charge(STEP)?;
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
        self.budget.charge(STEP)?;
        let (value, written) = match content {
            Content::Text(text) | Content::Unknown(text) => {
                self.budget.charge(text.len())?;
                return Ok((text.clone(), matches!(content, Content::Text(_))));
            }
            Content::Variable { name, default } => {
                let value = self.variable(name);
                let is_empty = value.as_ref().is_some_and(String::is_empty);
                let value = if is_empty { default.clone().or(value) } else { value };
                (value, format!("${name}"))
            }
            Content::Arithmetic(text) => {
                self.budget.charge(READ * text.len())?;
                let value = arithmetic::value(text, &mut |name| self.variable(name));
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
            (_, Some(value)) => {
                // Who asks finds out at the end of the command that it was too much.
                self.budget.charge(STEP + value.as_ref().map_or(0, String::len)).ok()?;
                value.clone()
            }
            ("RANDOM", None) => {
                let seed = self.seed?;
                self.draws += 1;
                Some((image::number(&(seed, self.draws)) % RANDOM_LIMIT).to_string())
            }
            // What the image or the cluster sets.
            ("PATH" | "HOME" | "PWD" | "USER" | "SHELL" | "PPID" | "UID", None) => None,
            (_, None) if self.has_other_variables => None,
            (_, None) if name.contains("_SERVICE_") || name.contains("_PORT_") => None,
            (_, None) => Some(String::new()),
        }
    }

    /// What a command writes, as a value; `None` if that is not known.
    fn capture(&mut self, script: &str) -> Result<Option<String>, Interrupt> {
        self.budget.charge(STEP + READ * script.len())?;
        let list = grammar::parse(script, self.depth);
        let outer = (self.captured.replace(Vec::new()), std::mem::take(&mut self.ends_on_failure));
        let mark = self.variables.begin_capture();
        let result = self.list(&list);
        self.variables.end_capture(&mark);
        let captured = std::mem::replace(&mut self.captured, outer.0);
        self.ends_on_failure = outer.1;
        match result {
            Ok(()) | Err(Interrupt::Break | Interrupt::Continue) => {}
            Err(Interrupt::Exit(code)) => self.status = code,
            Err(Interrupt::Unknown) => return Ok(None),
            Err(other) => return Err(other),
        }
        let captured = captured.unwrap_or_default().join("\n");
        Ok(Some(captured.trim_end_matches('\n').to_owned()))
    }
}
