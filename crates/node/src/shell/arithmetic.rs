//! Whole numbers in `$(( … ))`: `+ - * / %`, parentheses and variables.

use super::grammar::MOST_NESTING;
use std::{iter::Peekable, str::Chars};

/// The value of an expression; `None` if it is not understood or has no value.
pub(super) fn value(text: &str, variable: &mut dyn FnMut(&str) -> Option<String>) -> Option<i64> {
    let mut reader = Reader { letters: text.chars().peekable(), variable, depth: 0 };
    let value = reader.sum()?;
    reader.skip_blanks();
    reader.letters.next().is_none().then_some(value)
}

/// `None` for other operators, divisions by zero, and what does not fit.
pub(super) fn apply(left: i64, operator: char, right: i64) -> Option<i64> {
    match operator {
        '+' => left.checked_add(right),
        '-' => left.checked_sub(right),
        '*' => left.checked_mul(right),
        '/' => left.checked_div(right),
        '%' => left.checked_rem(right),
        _ => None,
    }
}

struct Reader<'a> {
    letters: Peekable<Chars<'a>>,
    variable: &'a mut dyn FnMut(&str) -> Option<String>,
    depth: usize,
}

impl Reader<'_> {
    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(operator) = self.operator("+-") {
            value = apply(value, operator, self.product()?)?;
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        while let Some(operator) = self.operator("*/%") {
            value = apply(value, operator, self.factor()?)?;
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MOST_NESTING {
            return None;
        }
        let value = match self.operator("-+($") {
            Some('-') => self.factor()?.checked_neg(),
            Some('+') => self.factor(),
            Some('(') => {
                let value = self.sum()?;
                self.operator(")").map(|_| value)
            }
            Some(_) if self.letters.next_if_eq(&'{').is_some() => {
                let value = self.number()?;
                self.letters.next_if_eq(&'}').map(|_| value)
            }
            _ => self.number(),
        };
        self.depth -= 1;
        value
    }

    /// A number, or a variable with one; an empty variable is 0.
    fn number(&mut self) -> Option<i64> {
        let mut text = String::new();
        while let Some(letter) = self.letters.next_if(|it| it.is_ascii_alphanumeric() || *it == '_') {
            text.push(letter);
        }
        if text.starts_with(|it: char| it.is_ascii_digit()) {
            // Shells read a leading zero as octal.
            return if text.len() > 1 && text.starts_with('0') { None } else { text.parse().ok() };
        }
        if text.is_empty() {
            return None;
        }
        let value = (self.variable)(&text)?;
        if value.trim().is_empty() { Some(0) } else { value.trim().parse().ok() }
    }

    fn operator(&mut self, operators: &str) -> Option<char> {
        self.skip_blanks();
        self.letters.next_if(|it| operators.contains(*it))
    }

    fn skip_blanks(&mut self) {
        while self.letters.next_if(char::is_ascii_whitespace).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_values_that_shells_give_them() {
        let mut variable = |name: &str| match name {
            "N" => Some("7".to_owned()),
            "TEXT" => Some("seven".to_owned()),
            "SECRET" => None,
            _ => Some(String::new()),
        };
        for (text, expected) in [
            ("1 + 2 * 3", Some(7)),
            (" (1+2)*3 ", Some(9)),
            ("7 / 2 - 7 % 2", Some(2)),
            ("-3 + +5", Some(2)),
            ("N % 2", Some(1)),
            ("$N + ${N}", Some(14)),
            ("UNSET + 1", Some(1)),
            ("1 / 0", None),
            ("9223372036854775807 + 1", None),
            ("SECRET + 1", None),
            ("TEXT", None),
            ("$(date) + 1", None),
            ("1 < 2", None),
            ("1 +", None),
            ("(1", None),
            ("", None),
            ("010", None),
            ("((((((((((((((((((1))))))))))))))))))", None),
        ] {
            assert_eq!(value(text, &mut variable), expected, "{text}");
        }
    }
}
