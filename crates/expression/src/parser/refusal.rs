//! Syntax errors, with the texts of cel-go's generated parser.

use super::*;

/// The tokens other than an expression that are allowed at a place, as the grammar's messages list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Nothing,
    Arguments,
    List,
    Map,
    Index,
}

impl Opening {
    fn also(self) -> &'static [&'static str] {
        match self {
            Opening::Nothing => &[],
            Opening::Arguments => &[")"],
            Opening::List => &["]", ",", "?"],
            Opening::Map => &["}", ",", "?"],
            Opening::Index => &["?"],
        }
    }

    /// Kubernetes: users and tests see this list as cel-go's grammar prints it.
    fn expected(self) -> String {
        let symbols = ["[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?"];
        let starts = ["[", "{", "(", ".", "-", "!"];
        let listed: Vec<String> = symbols
            .iter()
            .filter(|symbol| starts.contains(symbol) || self.also().contains(symbol))
            .map(|symbol| format!("'{symbol}'"))
            .collect();
        let words = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER";
        format!("{{{}, {words}}}", listed.join(", "))
    }
}

impl Parser<'_, '_> {
    /// Expects this symbol, after skipping a stray token or inserting a missing one where that is
    /// unambiguous.
    pub(super) fn expect(&mut self, symbol: &'static str) -> Read<Token> {
        if let Some(token) = self.take(symbol) {
            return Ok(token);
        }
        let token = self.peek();
        if self.following() == Some(Kind::Symbol(symbol)) {
            self.report("extraneous input", &format!("'{symbol}'"));
            self.at += 1;
            return Ok(self.next());
        }
        let fits_after =
            if symbol == ":" { starts_expression(token.kind) } else { self.may_follow_close(token.kind) };
        if fits_after {
            let shown = self.shown(token);
            self.found.at(token.start, format!("Syntax error: missing '{symbol}' at '{shown}'"));
            return Ok(token);
        }
        Err(self.report("mismatched input", &format!("'{symbol}'")))
    }

    /// Expects a comma or the end of a list, map or object; true when another element may follow.
    pub(super) fn comma_or(&mut self, close: &'static str) -> Read<bool> {
        if self.take(",").is_some() {
            return Ok(self.peek().kind == Kind::Symbol("?") || starts_expression(self.peek().kind));
        }
        if self.peek().kind == Kind::Symbol(close) {
            return Ok(false);
        }
        let expected = format!("{{'{close}', ','}}");
        let following = self.following();
        if following == Some(Kind::Symbol(close)) || following == Some(Kind::Symbol(",")) {
            self.report("extraneous input", &expected);
            self.at += 1;
            return self.comma_or(close);
        }
        Err(self.report("mismatched input", &expected))
    }

    pub(super) fn expect_end(&mut self) -> Read<()> {
        if self.peek().kind == Kind::End {
            return Ok(());
        }
        let last = self.following() == Some(Kind::End);
        Err(self.report(if last { "extraneous input" } else { "mismatched input" }, "<EOF>"))
    }

    /// No primary starts here; one stray token before a primary is skipped.
    pub(super) fn refuse_primary(&mut self) -> Read<Expr> {
        let (opened, opening) = self.opened;
        let opening = if opened == self.at { opening } else { Opening::Nothing };
        let expected = opening.expected();
        let symbol = |kind: Kind| matches!(kind, Kind::Symbol(symbol) if opening.also().contains(&symbol));
        let following = self.following();
        let fits = following.is_some_and(|kind| starts_expression(kind) || symbol(kind));
        if self.peek().kind != Kind::End && fits {
            let stop = self.report("extraneous input", &expected);
            self.at += 1;
            return if following.is_some_and(starts_expression) { self.primary() } else { Err(stop) };
        }
        let stop = self.report("mismatched input", &expected);
        // An operator without a left operand is read as one, and its right operand is reported as missing
        // too.
        if matches!(self.peek().kind, Kind::In) && following == Some(Kind::End) {
            self.at += 1;
            self.report("mismatched input", &Opening::Nothing.expected());
        }
        Err(stop)
    }

    /// No operand after a sign.
    pub(super) fn refuse_operand(&mut self, sign: &str) -> Read<Expr> {
        let token = self.peek();
        if sign == "!" {
            let what = if token.kind == Kind::End { "extraneous input" } else { "mismatched input" };
            return Err(self.report(what, &Opening::Nothing.expected()));
        }
        let stop = self.no_viable_alternative(sign);
        if token.kind != Kind::Symbol("!") {
            self.report("mismatched input", &Opening::Nothing.expected());
        }
        Err(stop)
    }

    pub(super) fn refuse_field_name(&mut self, optional: bool) -> Stop {
        if optional {
            let stop = self.report("mismatched input", "{IDENTIFIER, ESC_IDENTIFIER}");
            self.found.at(self.peek().start, "unsupported ident kind");
            return stop;
        }
        if matches!(self.peek().kind, Kind::True | Kind::False | Kind::Null) {
            return self.report("mismatched input", "IDENTIFIER");
        }
        let stop = self.no_viable_alternative(".");
        if matches!(self.peek().kind, Kind::In) && self.following() == Some(Kind::End) {
            self.at += 1;
            self.report("mismatched input", &Opening::Nothing.expected());
        }
        stop
    }

    pub(super) fn refuse_object_field(&mut self, optional: bool) -> Stop {
        let names = "IDENTIFIER, ESC_IDENTIFIER}";
        let expected = if optional { format!("{{{names}") } else { format!("{{'}}', ',', '?', {names}") };
        self.report("mismatched input", &expected)
    }

    fn no_viable_alternative(&mut self, before: &str) -> Stop {
        let token = self.peek();
        let shown = if token.kind == Kind::End { String::new() } else { self.text_of(token) };
        self.found.at(token.start, format!("Syntax error: no viable alternative at input '{before}{shown}'"));
        Stop
    }

    fn report(&mut self, what: &str, expected: &str) -> Stop {
        let token = self.peek();
        let shown = self.shown(token);
        self.found.at(token.start, format!("Syntax error: {what} '{shown}' expecting {expected}"));
        Stop
    }

    fn shown(&self, token: Token) -> String {
        if token.kind == Kind::End { String::from("<EOF>") } else { self.text_of(token) }
    }

    fn following(&self) -> Option<Kind> {
        self.tokens.get(self.at + 1).map(|token| token.kind)
    }

    /// The tokens after a closing bracket: an operator, or the end of the enclosing expression.
    fn may_follow_close(&self, kind: Kind) -> bool {
        match kind {
            Kind::End => self.open <= 1,
            Kind::In => true,
            Kind::Symbol(symbol) => match symbol {
                ")" | "]" | "}" | "," => self.open > 1,
                "(" | "{" | "!" => false,
                _ => true,
            },
            _ => false,
        }
    }
}

pub(super) fn starts_expression(kind: Kind) -> bool {
    match kind {
        Kind::Symbol(symbol) => matches!(symbol, "[" | "{" | "(" | "." | "-" | "!"),
        Kind::In | Kind::Escaped | Kind::End => false,
        _ => true,
    }
}
