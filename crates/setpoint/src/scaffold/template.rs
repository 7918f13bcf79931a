//! Fills a template: `«word»` is replaced, and lines between `«if word»` and `«end»` stay or go.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// The words of a template. A word that is empty counts as "no" for `«if word»`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(BTreeMap<&'static str, String>);

impl Words {
    pub(crate) fn with(mut self, word: &'static str, value: impl Into<String>) -> Words {
        self.0.insert(word, value.into());
        self
    }

    pub(crate) fn with_flag(self, word: &'static str, is_set: bool) -> Words {
        self.with(word, if is_set { "yes" } else { "" })
    }

    fn value(&self, word: &str) -> Result<&str> {
        let value = self.0.get(word).map(String::as_str);
        value.with_context(|| format!("the template has the unknown word {word:?}"))
    }

    /// Fills a template. The directives `«if word»`, `«else»` and `«end»` stand alone on their lines.
    pub(crate) fn fill(&self, template: &str) -> Result<String> {
        let mut filled = String::with_capacity(template.len());
        // Whether the lines of each open condition stay.
        let mut open: Vec<bool> = Vec::new();
        for line in template.lines() {
            match line.trim().strip_prefix('«').and_then(|line| line.strip_suffix('»')) {
                Some("end") => {
                    open.pop().context("an «end» without an «if»")?;
                }
                Some("else") => {
                    let stays = open.last_mut().context("an «else» without an «if»")?;
                    *stays = !*stays;
                }
                Some(condition) if condition.starts_with("if ") => {
                    open.push(!self.value(condition.trim_start_matches("if "))?.is_empty());
                }
                _ if open.iter().all(|stays| *stays) => {
                    self.fill_line(line, &mut filled)?;
                    filled.push('\n');
                }
                _ => {}
            }
        }
        if !open.is_empty() {
            bail!("an «if» without an «end»");
        }
        Ok(filled)
    }

    /// Fills one line, without an end of line.
    pub(crate) fn fill_text(&self, text: &str) -> Result<String> {
        let mut filled = String::new();
        self.fill_line(text, &mut filled)?;
        Ok(filled)
    }

    fn fill_line(&self, mut line: &str, filled: &mut String) -> Result<()> {
        while let Some((before, rest)) = line.split_once('«') {
            let (word, after) = rest.split_once('»').context("a « without a »")?;
            filled.push_str(before);
            filled.push_str(self.value(word)?);
            line = after;
        }
        filled.push_str(line);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_and_conditions_choose_lines() {
        let words = Words::default().with("kind", "Redis").with_flag("yes", true).with_flag("no", false);
        for (template, expected) in [
            ("struct «kind»Spec; // «kind»", Ok("struct RedisSpec; // Redis\n")),
            ("«if yes»\na\n«else»\nb\n«end»\nc", Ok("a\nc\n")),
            ("«if no»\na\n«else»\nb\n«end»\nc", Ok("b\nc\n")),
            ("«if yes»\n«if no»\na\n«end»\nb\n«end»", Ok("b\n")),
            ("{{ .Values }} ${{ x }}", Ok("{{ .Values }} ${{ x }}\n")),
            ("«size»", Err("the template has the unknown word \"size\"")),
            ("«if yes»", Err("an «if» without an «end»")),
            ("«end»", Err("an «end» without an «if»")),
            ("«kind", Err("a « without a »")),
        ] {
            let filled = words.fill(template).map_err(|error| error.to_string());
            assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{template}");
        }
    }
}
