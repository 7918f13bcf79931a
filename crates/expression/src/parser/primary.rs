//! Primary expressions: names, calls, literals, lists, maps, objects, parentheses.

use super::*;

impl Parser<'_, '_> {
    pub(super) fn primary(&mut self) -> Read<Expr> {
        let token = self.peek();
        match token.kind {
            Kind::Identifier => self.named(None),
            Kind::Symbol(".") => {
                self.at += 1;
                if self.peek().kind != Kind::Identifier {
                    return Err(self.refuse_field_name(false));
                }
                self.named(Some(token))
            }
            Kind::Symbol("(") => {
                self.at += 1;
                self.open(Opening::Nothing);
                let inner = self.expr()?;
                self.close(")")?;
                Ok(inner)
            }
            Kind::Symbol("[") => self.list(),
            Kind::Symbol("{") => self.map(),
            _ => self.literal(token),
        }
    }

    fn literal(&mut self, token: Token) -> Read<Expr> {
        let negative = token.kind == Kind::Symbol("-") && self.is_signed_number();
        let number = if negative { self.tokens[self.at + 1] } else { token };
        let text = self.text_of(number);
        let value = match number.kind {
            Kind::True => Ok(Value::Bool(true)),
            Kind::False => Ok(Value::Bool(false)),
            Kind::Null => Ok(Value::Null),
            Kind::Int => literal::int(&text, negative),
            Kind::Uint => literal::uint(&text),
            Kind::Float => literal::double(&text, negative),
            Kind::String => literal::string(&text),
            Kind::Bytes => literal::bytes(&text),
            _ => return self.refuse_primary(),
        };
        self.at += if negative { 2 } else { 1 };
        match value {
            Ok(value) => Ok(self.made_at(token.start, Node::Literal(value))),
            Err(message) => {
                self.found.at(token.start, message);
                Ok(self.placeholder(token.start))
            }
        }
    }

    /// `name`, `name(…)`, `a.b.Name{…}`, each with an optional leading dot.
    fn named(&mut self, dot: Option<Token>) -> Read<Expr> {
        if let Some(brace) = self.object_brace() {
            return self.object(dot, brace);
        }
        let token = self.next();
        let name = self.text_of(token);
        let place = dot.unwrap_or(token);
        let reserved = RESERVED.contains(&name.as_str());
        let full = if dot.is_some() { format!(".{name}") } else { name.clone() };
        if self.peek().kind == Kind::Symbol("(") {
            let open = self.next();
            let args = self.arguments()?;
            if reserved {
                return Ok(self.refuse_reserved(place, &name));
            }
            return Ok(self.call_or_macro(open, &full, None, args));
        }
        if reserved {
            return Ok(self.refuse_reserved(place, &name));
        }
        Ok(self.made_at(token.start, Node::Ident(full.into())))
    }

    fn refuse_reserved(&mut self, place: Token, name: &str) -> Expr {
        self.found.at(place.start, format!("reserved identifier: {name}"));
        self.placeholder(place.start)
    }

    /// The position of the brace of `a.b.Name{`, if these tokens are that.
    fn object_brace(&self) -> Option<usize> {
        let mut at = self.at + 1;
        let kind = |at: usize| self.tokens.get(at).map(|token| token.kind);
        while kind(at) == Some(Kind::Symbol(".")) && kind(at + 1) == Some(Kind::Identifier) {
            at += 2;
        }
        (kind(at) == Some(Kind::Symbol("{"))).then_some(at)
    }

    fn object(&mut self, dot: Option<Token>, brace: usize) -> Read<Expr> {
        let mut name = if dot.is_some() { String::from(".") } else { String::new() };
        for at in self.at..brace {
            name.push_str(&self.text_of(self.tokens[at]));
        }
        self.at = brace;
        let open = self.next();
        let mut fields = Vec::new();
        self.open(Opening::Nothing);
        let mut more = !self.closes("}");
        while more {
            let optional = self.take("?").is_some();
            let token = self.peek();
            if !matches!(token.kind, Kind::Identifier | Kind::Escaped) {
                return Err(self.refuse_object_field(optional));
            }
            self.at += 1;
            if token.kind == Kind::Escaped {
                self.found.at(token.start, "unsupported syntax: '`'");
            }
            let field: Arc<str> = self.text_of(token).into();
            let colon = self.expect(":")?;
            let value = self.expr()?;
            let key = self.made_at(token.start, Node::Literal(Value::string(field)));
            fields.push(self.entry(colon, key, value, optional));
            more = self.comma_or("}")?;
        }
        self.close("}")?;
        Ok(self.made_at(open.start, Node::Struct { name: name.into(), fields }))
    }

    fn entry(&mut self, colon: Token, key: Expr, value: Expr, optional: bool) -> Entry {
        let id = self.made.next;
        self.made.next += 1;
        Entry { id, offset: colon.start, key, value, optional }
    }

    fn list(&mut self) -> Read<Expr> {
        let open = self.next();
        let mut items = Vec::new();
        let mut optional = Vec::new();
        self.open(Opening::List);
        let mut more = !self.closes("]");
        while more {
            if self.take("?").is_some() {
                optional.push(items.len() as u32);
            }
            items.push(self.expr()?);
            more = self.comma_or("]")?;
        }
        self.close("]")?;
        Ok(self.made_at(open.start, Node::List { items, optional }))
    }

    fn map(&mut self) -> Read<Expr> {
        let open = self.next();
        let mut entries = Vec::new();
        self.open(Opening::Map);
        let mut more = !self.closes("}");
        while more {
            let optional = self.take("?").is_some();
            let key = self.expr()?;
            let colon = self.expect(":")?;
            let value = self.expr()?;
            entries.push(self.entry(colon, key, value, optional));
            more = self.comma_or("}")?;
        }
        self.close("}")?;
        Ok(self.made_at(open.start, Node::Map(entries)))
    }

    /// Whether the literal ends here; `[,]` and `{,}` are empty ones.
    fn closes(&mut self, symbol: &'static str) -> bool {
        if self.peek().kind == Kind::Symbol(",")
            && self.tokens.get(self.at + 1).map(|token| token.kind) == Some(Kind::Symbol(symbol))
        {
            self.at += 1;
        }
        self.peek().kind == Kind::Symbol(symbol)
    }
}
