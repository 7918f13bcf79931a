//! Patterns and their matches in Go, or Go's errors.

use super::{Reader, compile, compile_cost, measure, unicode};
use regex::RegexBuilder;

const FINDS: &[(&str, &str, &[&str])] = &[
    ("[0-9]*", "abc 123", &["", "", "", "", "123"]),
    ("", "ab", &["", "", ""]),
    ("a*", "baaac", &["", "aaa", ""]),
    ("a|b|", "abc", &["a", "b", ""]),
    (r"\d+", "1٣2", &["1", "2"]),
    (r"\D+", "a1٣", &["a", "٣"]),
    (r"\w+", "aé_1", &["a", "_1"]),
    (r"\W", "aé ", &["é", " "]),
    (r"\s+", "a \t\u{b}\u{a0}b", &[" \t"]),
    (r"\S+", "a\u{a0}b c", &["a\u{a0}b", "c"]),
    (r"\bfoo\b", "foo éfooé", &["foo", "foo"]),
    (r"\B.", "éa b", &["é"]),
    ("(?i)straSSe", "STRAsse \u{17f}", &["STRAsse"]),
    ("(?i)k", "kK\u{212a}", &["k", "K", "\u{212a}"]),
    ("(?i)[^k]", "kKx\u{212a}", &["x"]),
    (r"(?i)\W", "\u{17f}a-", &["-"]),
    ("^a", "a\na", &["a"]),
    ("(?m)^a$", "a\na", &["a", "a"]),
    ("a$", "a\n", &[]),
    ("a.b", "a\nb axb", &["axb"]),
    ("(?s)a.b", "a\nb", &["a\nb"]),
    ("(?U)a+", "aaa", &["a", "a", "a"]),
    ("(?U)a+?", "aaa", &["aaa"]),
    ("a+?", "aaa", &["a", "a", "a"]),
    ("(?i-s:A)b", "ab aB", &["ab"]),
    ("(?)a", "a", &["a"]),
    ("(?i)a(?-i)b", "AB Ab", &["Ab"]),
    ("a(?i)*", "aaA", &["aa", ""]),
    ("a*(?i)?", "aaa", &["aaa"]),
    ("a{2}", "aaaa", &["aa", "aa"]),
    ("a{2,}", "aaaa", &["aaaa"]),
    ("a{1,2}?", "aaaa", &["a", "a", "a", "a"]),
    ("a{,2}", "a{,2}", &["a{,2}"]),
    ("a{", "a{", &["a{"]),
    ("{", "{", &["{"]),
    ("a{2", "a{2", &["a{2"]),
    ("a{02}", "a{02}", &["a{02}"]),
    ("x{0}y", "y", &["y"]),
    ("[]a]", "a]", &["a", "]"]),
    ("[^]a]", "a]b", &["b"]),
    ("[a-]", "a-b", &["a", "-"]),
    ("[-a]", "a-b", &["a", "-"]),
    (r"[a\-z]", "a-bz", &["a", "-", "z"]),
    (r"[\d\-x]+", "1-x٣", &["1-x"]),
    ("[[:alpha:]]+", "aé", &["a"]),
    ("[[:^alpha:]]+", "aé1", &["é1"]),
    ("[[:word:]]+", "a_1-", &["a_1"]),
    (r"[\pL-]+", "aé-1", &["aé-"]),
    ("[[a]+", "a[", &["a["]),
    ("[a&&b]+", "a&b", &["a&b"]),
    ("[~~]", "~", &["~"]),
    (r"[#\s]+", "# \t", &["# \t"]),
    (r"[\Wa]+", "a-b", &["a-"]),
    (r"\pN", "1a", &["1"]),
    (r"\p{Greek}+", "aαβ", &["αβ"]),
    (r"\P{greek}+", "aαβ", &["a"]),
    (r"\p{^Greek}+", "aαβ", &["a"]),
    (r"\p{Letter}", "a1", &["a"]),
    (r"\p{Assigned}", "a\u{378}", &["a"]),
    (r"\p{Any}", "a", &["a"]),
    (r"\p{ASCII}+", "aé", &["a"]),
    (r"\Qa.b*\E+", "a.b** a.b*", &["a.b**", "a.b*"]),
    (r"\Qab", "ab", &["ab"]),
    (r"\x41\x{263a}\101\0", "A☺A\u{0}", &["A☺A\u{0}"]),
    (r"\12", "\n", &["\n"]),
    ("\\_\\-\\/\\\"\\ ", "_-/\" ", &["_-/\" "]),
    (r"\z", "a", &[""]),
    (r"\Aa", "aa", &["a"]),
    (r"\a\f\n\r\t\v", "\u{7}\u{c}\n\r\t\u{b}", &["\u{7}\u{c}\n\r\t\u{b}"]),
    (r"[\x{D800}-\x{DFFF}]", "a", &[]),
    (r"[^\x{D800}-\x{DFFF}]", "a", &["a"]),
    (r"\x{D800}", "a", &[]),
    (r"[^\x00-\x{10FFFF}]", "a", &[]),
    (r"[a-\x{10FFFF}]+", "aé", &["aé"]),
    ("a??", "a", &["", ""]),
    ("^*a", "a", &["a"]),
    (r"\b*a", "a", &["a"]),
    ("$+", "a", &[""]),
    ("a{1000}b", "a", &[]),
    ("(a{100}){10}", "a", &[]),
    ("(a{0}){1000}x", "x", &["x"]),
    ("(?P<n>a)(?<m>b)", "ab", &["ab"]),
    ("(?P<n>a)(?P<n>b)", "ab", &["ab"]),
    ("()", "a", &["", ""]),
    ("(|a)*", "aa", &["", "", ""]),
    ("(a*)*", "aa", &["aa"]),
    ("a||b", "ab", &["a", ""]),
    ("||", "a", &["", ""]),
    ("a#b c", "a#b c", &["a#b c"]),
    ("é+", "éé", &["éé"]),
    ("[é-í]+", "éêx", &["éê"]),
    ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", &["a-b"]),
];

const REFUSALS: &[(&str, &str)] = &[
    ("[a--b]", "invalid character class range: `a--`"),
    (r"\p{Old_Italic}", r"invalid character class range: `\p{Old_Italic}`"),
    (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
    (r"\p{Greek", r"invalid character class range: `\p{Greek`"),
    (r"\pX", r"invalid character class range: `\pX`"),
    (r"\p", r"invalid character class range: `\p`"),
    (r"[\p]", r"invalid character class range: `\p]`"),
    (r"\Q\E*", "missing argument to repetition operator: `*`"),
    (r"\x4", r"invalid escape sequence: `\x4`"),
    (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
    (r"\x{}", r"invalid escape sequence: `\x{}`"),
    (r"\x{4", r"invalid escape sequence: `\x{4`"),
    (r"\xg1", r"invalid escape sequence: `\xg1`"),
    (r"\x", r"invalid escape sequence: `\x`"),
    (r"\1", r"invalid escape sequence: `\1`"),
    (r"\8", r"invalid escape sequence: `\8`"),
    (r"\é", r"invalid escape sequence: `\é`"),
    (r"\q", r"invalid escape sequence: `\q`"),
    (r"\Z", r"invalid escape sequence: `\Z`"),
    (r"\C", r"invalid escape sequence: `\C`"),
    (r"\", "trailing backslash at end of expression: ``"),
    ("(", "missing closing ): `(`"),
    (")", "unexpected ): `)`"),
    ("a)", "unexpected ): `a)`"),
    ("(a", "missing closing ): `(a`"),
    ("[a", "missing closing ]: `[a`"),
    ("[", "missing closing ]: `[`"),
    ("[]", "missing closing ]: `[]`"),
    ("[^", "missing closing ]: `[^`"),
    ("[z-a]", "invalid character class range: `z-a`"),
    (r"[a-\d]", r"invalid escape sequence: `\d`"),
    ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
    ("[[:alpha:]", "missing closing ]: `[[:alpha:]`"),
    ("[[:alpha", "missing closing ]: `[[:alpha`"),
    ("*", "missing argument to repetition operator: `*`"),
    ("+a", "missing argument to repetition operator: `+`"),
    ("a|*", "missing argument to repetition operator: `*`"),
    ("(*)", "missing argument to repetition operator: `*`"),
    ("(?i)*", "missing argument to repetition operator: `*`"),
    ("a**", "invalid nested repetition operator: `**`"),
    ("a*+", "invalid nested repetition operator: `*+`"),
    ("a+?+", "invalid nested repetition operator: `+?+`"),
    ("a???", "invalid nested repetition operator: `???`"),
    ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
    ("a{2}*", "invalid nested repetition operator: `{2}*`"),
    ("a*{2}", "invalid nested repetition operator: `*{2}`"),
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("(a{100}){11}", "invalid repeat count: `{11}`"),
    ("((a{100}){5}){3}", "invalid repeat count: `{3}`"),
    ("a{2,1}", "invalid repeat count: `{2,1}`"),
    ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
    ("(a{11,}){100}", "invalid repeat count: `{100}`"),
    ("((a{2})*){600}", "invalid repeat count: `{600}`"),
    ("a{0,1001}", "invalid repeat count: `{0,1001}`"),
    ("(?P<n", "invalid named capture: `(?P<n`"),
    ("(?P<>a)", "invalid named capture: `(?P<>`"),
    ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
    ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
    ("(?<", "invalid or unsupported Perl syntax: `(?<`"),
    ("(?P<", "invalid or unsupported Perl syntax: `(?P`"),
    ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
    ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
    ("(?-)a", "invalid or unsupported Perl syntax: `(?-)`"),
    ("(?--i)a", "invalid or unsupported Perl syntax: `(?--`"),
    ("(?", "invalid or unsupported Perl syntax: `(?`"),
    ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
    ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
    ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
    ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
    ("(?#c)", "invalid or unsupported Perl syntax: `(?#`"),
];

#[test]
fn patterns_match_as_in_go() {
    for (pattern, text, expected) in FINDS {
        let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let found: Vec<_> = regex.find_iter(text).map(|found| found.as_str()).collect();
        assert_eq!(found, *expected, "{pattern}");
    }
}

#[test]
fn malformed_patterns_have_the_errors_of_go() {
    for (pattern, expected) in REFUSALS {
        let error = compile(pattern).expect_err(pattern);
        assert_eq!(error.message(), format!("error parsing regexp: {expected}"), "{pattern}");
    }
}

#[test]
fn every_unicode_name_of_go_is_known() {
    let short = unicode::CATEGORIES.split_whitespace().chain(unicode::SCRIPTS.split_whitespace());
    for name in short.chain(["LC", "nko", "Cased_Letter", "uppercase letter", "punct", "Surrogate"]) {
        compile(&format!(r"\p{{{name}}}")).expect(name);
    }
}

#[test]
fn deep_nesting_is_rejected() {
    for (depth, accepted) in [(100, true), (400, true), (2000, false)] {
        let pattern = format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(compile(&pattern).is_ok(), accepted, "{depth}");
    }
}

/// Patterns with the approximate sizes of their programs.
const SIZES: &[&str] = &[
    "a",
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    ".{1,253}",
    r"\pL",
    r"\pL{30}",
    r"[\pL\pN_-]{1,63}",
    r"(?i)[a-zäöü]{100}",
    "[^a]{500}",
    r"\PL{50}",
    r"(\pL{3}){20}",
    r"(?:a|b|c){1000}",
    r"\w{1000}",
    r"[\x{100}-\x{200}\x{1000}-\x{5000}]{100}",
    r"\p{Greek}{100}",
    r"[[:^alpha:]]{200}",
    r"(?i)\pL{20}",
];

#[test]
fn programs_are_no_larger_than_measured() {
    for pattern in SIZES {
        let measured = measure(pattern).unwrap();
        let (translated, _) = Reader::new(pattern).read().unwrap();
        let fits = |limit: usize| RegexBuilder::new(&translated).size_limit(limit).build().is_ok();
        assert!(fits(measured + measured / 2 + 1024), "{pattern}: larger than {measured}");
    }
}

#[test]
fn large_programs_are_rejected_before_compiling() {
    let nested = format!("{}{}", r"(\pL".repeat(900), ")".repeat(900));
    for pattern in [
        r"\pL{1000}",
        r"(\pL{30}){30}",
        r"(?:.{1000})(?:.{1000}){1000}|\pL{900}",
        &r"\pL".repeat(100_000),
        &r"[\pL\pN\pS\pM]{1,200}".repeat(3),
        &nested,
        &format!("[{}]", r"\pL".repeat(100_000)),
        &"a{1000}".repeat(10_000),
    ] {
        let error = measure(pattern).expect_err(pattern);
        assert!(error.message().contains("too large") || error.message().contains("repeat count"), "{error}");
        assert!(error.message().len() < 2000);
        assert_eq!(compile(pattern).err(), Some(error));
    }
}

#[test]
fn compiling_large_patterns_costs_extra() {
    for (pattern, is_free) in [
        ("^[a-z]+$", true),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", true),
        (r"\pL{100}", false),
    ] {
        assert_eq!(compile_cost(pattern) == 0, is_free, "{pattern}: {}", compile_cost(pattern));
    }
    assert!(compile_cost(r"\pL{100}") > 200_000);
}
