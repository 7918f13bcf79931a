//! What a file declares: functions with their bodies, types, modules, and the parts that are for tests only.

use super::token::Token;
use std::ops::{Range, RangeInclusive};

#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) functions: Vec<Function>,
    /// Structs, enums, traits and aliases of modules, not those inside functions or impls.
    pub(crate) types: Vec<TypeName>,
    pub(crate) modules: Vec<ModuleLine>,
    /// The lines of each item under `#[cfg(test)]`.
    pub(crate) test_lines: Vec<RangeInclusive<usize>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From `fn` to the closing brace.
    pub(crate) lines: usize,
    /// Places in the code of the file; empty where there is only a signature.
    pub(crate) body: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct TypeName {
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// `mod name;`, whose text is in a file of its own.
#[derive(Debug)]
pub(crate) struct ModuleLine {
    pub(crate) name: String,
    /// The modules with a body, in this file, in which the line stands.
    pub(crate) within: Vec<String>,
    /// `#[path = "…"]`.
    pub(crate) path: Option<String>,
    pub(crate) is_test: bool,
}

impl Outline {
    pub(crate) fn of(text: &str, code: &[Token]) -> Outline {
        Reader { text, code }.outline()
    }

    /// Whether a line is compiled for tests only.
    pub(crate) fn is_test_at(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }
}

struct Reader<'a> {
    text: &'a str,
    code: &'a [Token],
}

/// What an opening brace belongs to.
enum Block {
    Module(String),
    Other,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> &str {
        self.code.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    fn line(&self, at: usize) -> usize {
        self.code.get(at).or(self.code.last()).map_or(1, |token| token.line)
    }

    fn is_name(&self, at: usize) -> bool {
        self.word(at).starts_with(|first: char| first.is_alphabetic() || first == '_')
    }

    fn outline(&self) -> Outline {
        let mut outline = Outline::default();
        let mut blocks: Vec<Block> = Vec::new();
        let mut path = None;
        for at in 0..self.code.len() {
            let is_in_module = blocks.iter().all(|block| matches!(block, Block::Module(_)));
            match self.word(at) {
                "{" => blocks.push(match at >= 2 && self.word(at - 2) == "mod" {
                    true => Block::Module(self.word(at - 1).to_owned()),
                    false => Block::Other,
                }),
                "}" => drop(blocks.pop()),
                "fn" if self.is_name(at + 1) => outline.functions.push(self.function(at)),
                "#" if self.is_cfg_test(at) && !outline.is_test_at(self.line(at)) => {
                    outline.test_lines.push(self.line(at)..=self.line(self.item_end(at)));
                }
                "path" if at >= 2 && self.word(at - 2) == "#" && self.word(at + 1) == "=" => {
                    path = Some(self.word(at + 2).trim_matches('"').to_owned());
                }
                "struct" | "enum" | "trait" | "type" if is_in_module && self.is_name(at + 1) => {
                    outline.types.push(TypeName { name: self.word(at + 1).to_owned(), line: self.line(at) });
                }
                "mod" if is_in_module && self.word(at + 2) == ";" => {
                    let is_test = outline.is_test_at(self.line(at));
                    let within = blocks.iter().filter_map(|block| match block {
                        Block::Module(name) => Some(name.clone()),
                        Block::Other => None,
                    });
                    let (name, within) = (self.word(at + 1).to_owned(), within.collect());
                    outline.modules.push(ModuleLine { name, within, path: path.take(), is_test });
                }
                _ => {}
            }
        }
        outline
    }

    /// The function whose `fn` stands at a place.
    fn function(&self, at: usize) -> Function {
        let (name, line) = (self.word(at + 1).to_owned(), self.line(at));
        let mut depth = 0_usize;
        for place in at + 2..self.code.len() {
            match self.word(place) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => {
                    let lines = self.line(place) - line + 1;
                    return Function { name, line, lines, body: place..place };
                }
                "{" if depth == 0 => {
                    let end = self.closing(place);
                    return Function { name, line, lines: self.line(end) - line + 1, body: place..end };
                }
                _ => {}
            }
        }
        Function { name, line, lines: 1, body: at..at }
    }

    /// Where the bracket closes that opens at a place.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for at in open..self.code.len() {
            match self.word(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                return at;
            }
        }
        self.code.len()
    }

    /// Whether `#[cfg(test)]` or `#[cfg(all(test, …))]` begins at a place.
    fn is_cfg_test(&self, at: usize) -> bool {
        let words =
            |from: usize, wanted: &[&str]| (from..).zip(wanted).all(|(at, wanted)| self.word(at) == *wanted);
        words(at + 1, &["[", "cfg", "(", "test", ")"])
            || words(at + 1, &["[", "cfg", "(", "all", "(", "test"])
    }

    /// The last token of the item whose first attribute begins at a place.
    fn item_end(&self, attribute: usize) -> usize {
        let mut at = attribute;
        while at < self.code.len() {
            match self.word(at) {
                ";" => return at,
                "{" => return self.closing(at),
                "(" | "[" => at = self.closing(at),
                _ => {}
            }
            at += 1;
        }
        self.code.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    const TEXT: &str = "\
mod plain;
#[cfg(test)]
mod cases;
#[path = \"elsewhere/here.rs\"]
mod moved;
pub(crate) struct One<T>(T);
impl One<u8> {
    type Alias = u8;
    fn method(&self) -> [u8; 2] {
        struct Inner;
        fn nested() {}
        [1, 2]
    }
}
trait Two {
    fn signature(&self, of: fn(u8) -> u8);
}
mod inline {
    mod child;
    enum Three {}
}
#[cfg(test)]
mod tests {
    struct Four;
}
";

    #[test]
    fn declarations_are_found_with_their_lines() {
        let outline = Source::parse("crates/a/src/b.rs", TEXT).outline;
        let functions: Vec<_> =
            outline.functions.iter().map(|found| (found.name.as_str(), found.line, found.lines)).collect();
        assert_eq!(functions, [("method", 9, 5), ("nested", 11, 1), ("signature", 16, 1)]);
        let types: Vec<_> = outline.types.iter().map(|found| (found.name.as_str(), found.line)).collect();
        assert_eq!(types, [("One", 6), ("Two", 15), ("Three", 20), ("Four", 24)]);
        assert_eq!(outline.test_lines, [2..=3, 22..=25]);
    }

    #[test]
    fn module_lines_know_where_their_file_is() {
        let outline = Source::parse("crates/a/src/b.rs", TEXT).outline;
        let modules: Vec<_> = outline
            .modules
            .iter()
            .map(|line| (line.name.as_str(), line.within.join("/"), line.path.as_deref(), line.is_test))
            .collect();
        assert_eq!(
            modules,
            [
                ("plain", String::new(), None, false),
                ("cases", String::new(), None, true),
                ("moved", String::new(), Some("elsewhere/here.rs"), false),
                ("child", "inline".to_owned(), None, false),
            ]
        );
    }
}
