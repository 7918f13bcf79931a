//! `\pL` and `\p{Greek}`: the names that Go knows.

use super::{class::BAD_RANGE, refuse};
use crate::error::Error;

pub(super) const CATEGORIES: &str = "C Cc Cf Cn Co Cs L Lc Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc \
    Sk Sm So Z Zl Zp Zs";

/// Long names, without the underscores that Go ignores.
const ALIASES: &str = "Casedletter=LC Closepunctuation=Pe Combiningmark=M Connectorpunctuation=Pc Control=Cc \
    Currencysymbol=Sc Dashpunctuation=Pd Decimalnumber=Nd Enclosingmark=Me Finalpunctuation=Pf Format=Cf \
    Initialpunctuation=Pi Letter=L Letternumber=Nl Lineseparator=Zl Lowercaseletter=Ll Mark=M Mathsymbol=Sm \
    Modifierletter=Lm Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Other=C Otherletter=Lo \
    Othernumber=No Otherpunctuation=Po Othersymbol=So Paragraphseparator=Zp Privateuse=Co Punctuation=P \
    Separator=Z Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs Symbol=S Titlecaseletter=Lt Unassigned=Cn \
    Uppercaseletter=Lu Cntrl=Cc Digit=Nd Punct=P";

/// Go: a script of two words is never found, because its name is looked up without the underscore.
pub(super) const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi \
    Han Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer \
    Khojki Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean \
    Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya \
    Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian \
    Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh \
    Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

/// The set of the `\p…` at the beginning of the text, as the `regex` crate writes it, and the rest.
pub(super) fn class(here: &str) -> Result<Option<(String, &str)>, Error> {
    let Some(rest) = here.strip_prefix(r"\p").or_else(|| here.strip_prefix(r"\P")) else { return Ok(None) };
    let Some(first) = rest.chars().next() else {
        // Go decodes a missing character.
        return Err(refuse(BAD_RANGE, here));
    };
    let (name, after) = match rest.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or_else(|| refuse(BAD_RANGE, here))?,
        None => rest.split_at(first.len_utf8()),
    };
    let (bare, inverted) = match name.strip_prefix('^') {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    let Some((property, complement)) = property(&canonical(bare)) else {
        return Err(refuse(BAD_RANGE, &here[..here.len() - after.len()]));
    };
    let negated = here.starts_with(r"\P") ^ inverted ^ complement;
    Ok(Some((format!(r"\{}{{{property}}}", if negated { 'P' } else { 'p' }), after)))
}

/// The property under its name in the `regex` crate, and whether its complement is meant.
fn property(name: &str) -> Option<(String, bool)> {
    let words = |list: &'static str| list.split_ascii_whitespace();
    let category = |short: &str| format!("gc={short}");
    match name {
        "Any" => return Some(("any".to_owned(), false)),
        "Assigned" => return Some((category("Cn"), true)),
        "Ascii" => return Some(("ascii".to_owned(), false)),
        // Text cannot contain surrogates, and the `regex` crate has no name for them.
        "Cs" | "Surrogate" => return Some(("any".to_owned(), true)),
        _ => {}
    }
    let alias = words(ALIASES).filter_map(|pair| pair.split_once('=')).find(|(long, _)| *long == name);
    let found = if words(CATEGORIES).any(|short| short == name) {
        category(name)
    } else if words(SCRIPTS).any(|script| script == name) {
        format!("sc={name}")
    } else {
        category(alias?.1)
    };
    Some((found, false))
}

/// Go: case and word breaks do not matter.
fn canonical(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')) {
        out.push(if out.is_empty() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    }
    out
}
