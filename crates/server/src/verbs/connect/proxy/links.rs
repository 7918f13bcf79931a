//! Links in HTML pages of a pod: paths from the root are below that of the proxy for the client.

use super::location;
use bytes::Bytes;
use http::{HeaderMap, header};
use std::ops::Range;

/// A longer tag stays as it is: such ones hold images as data, and a page may not make the server hold more.
const MAX_TAG: usize = 8 << 10;
/// Kubernetes: which attributes of which elements hold a link.
const LINKS: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];
/// What is in these elements is no HTML until they end.
const TEXTS: [&str; 9] =
    ["iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp"];

/// Changes the links of a page while it passes through.
#[derive(Debug)]
pub(super) struct LinkRewriter {
    prefix: String,
    backend: String,
    host: String,
    /// What has come and cannot be passed on before more has come: at most a tag.
    held: Vec<u8>,
    /// What ends a text that is no HTML.
    end_of_text: Option<String>,
}

impl LinkRewriter {
    /// For an answer with these headers; `None` if it is no page, or one that is compressed. Its length will be another.
    pub(super) fn of_page(
        headers: &mut HeaderMap,
        prefix: &str,
        backend: &str,
        host: &str,
    ) -> Option<LinkRewriter> {
        let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let is_page = kind.split(';').next().is_some_and(|kind| kind.trim() == "text/html");
        if !is_page || [header::LOCATION, header::CONTENT_ENCODING].iter().any(|it| headers.contains_key(it))
        {
            return None;
        }
        headers.remove(header::CONTENT_LENGTH);
        let [prefix, backend, host] = [prefix, backend, host].map(str::to_owned);
        Some(LinkRewriter { prefix, backend, host, held: Vec::new(), end_of_text: None })
    }

    /// The next part of the page, as far as it can be passed on.
    pub(super) fn push(&mut self, part: &[u8]) -> Bytes {
        self.held.extend_from_slice(part);
        let held = std::mem::take(&mut self.held);
        let (mut out, mut at) = (Vec::with_capacity(held.len()), 0);
        while at < held.len() {
            let Some(length) = self.step(&held[at..], &mut out) else { break };
            at += length;
        }
        self.held = held[at..].to_vec();
        out.into()
    }

    /// What is left when the page ends.
    pub(super) fn finish(self) -> Bytes {
        self.held.into()
    }

    /// Writes what `rest` begins with; returns its length, or `None` if more must come first.
    fn step(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if let Some(end) = &self.end_of_text {
            let (length, is_complete) = match find(rest, end) {
                Some(at) => (at, true),
                None => (rest.len().saturating_sub(end.len() - 1), false),
            };
            out.extend_from_slice(&rest[..length]);
            if is_complete {
                self.end_of_text = None;
            }
            return (is_complete || length > 0).then_some(length);
        }
        let text = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
        if text > 0 {
            out.extend_from_slice(&rest[..text]);
            return Some(text);
        }
        const COMMENT: &[u8] = b"<!--";
        if rest.len() < COMMENT.len() && COMMENT.starts_with(rest) {
            return None;
        }
        if rest.starts_with(COMMENT) {
            self.end_of_text = Some("-->".to_owned());
            // Kubernetes: `<!-->` is a comment, too.
            out.extend_from_slice(b"<!");
            return Some(2);
        }
        if !rest[1].is_ascii_alphabetic() {
            out.push(b'<');
            return Some(1);
        }
        let (tag, is_long) = rest.split_at_checked(MAX_TAG).map_or((rest, false), |(tag, _)| (tag, true));
        match Tag::parse(tag) {
            Some(tag) => {
                let length = tag.length;
                self.write(tag, &rest[..length], out);
                Some(length)
            }
            // All of it: to look for a tag at each `<` of many that never end would take the square of the page.
            None if is_long => {
                out.extend_from_slice(tag);
                Some(tag.len())
            }
            None => None,
        }
    }

    fn write(&mut self, tag: Tag, text: &[u8], out: &mut Vec<u8>) {
        if TEXTS.contains(&tag.name.as_str()) {
            self.end_of_text = Some(format!("</{}", tag.name));
        }
        let links = LINKS.iter().find(|(name, _)| *name == tag.name).map(|(_, links)| *links);
        let mut written = 0;
        for (name, value) in tag.attributes {
            let is_link = links.is_some_and(|links| links.contains(&name.as_str()));
            let link = std::str::from_utf8(&text[value.clone()]).ok().filter(|_| is_link);
            let changed =
                link.and_then(|link| location::rewritten(link, &self.prefix, &self.backend, &self.host));
            if let Some(changed) = changed {
                out.extend_from_slice(&text[written..value.start]);
                out.extend_from_slice(changed.as_bytes());
                written = value.end;
            }
        }
        out.extend_from_slice(&text[written..]);
    }
}

/// The beginning of an element.
struct Tag {
    /// In small letters, as the names of attributes.
    name: String,
    attributes: Vec<(String, Range<usize>)>,
    /// With its brackets.
    length: usize,
}

impl Tag {
    /// `None` if the text ends before the tag.
    fn parse(text: &[u8]) -> Option<Tag> {
        let until = |from: usize, ends: &dyn Fn(u8) -> bool| {
            let length = text.get(from..)?.iter().position(|byte| ends(*byte))?;
            Some(from + length)
        };
        let word = |range: Range<usize>| String::from_utf8_lossy(&text[range]).to_ascii_lowercase();
        let mut at = until(1, &|byte| byte.is_ascii_whitespace() || byte == b'/' || byte == b'>')?;
        let (name, mut attributes) = (word(1..at), Vec::new());
        loop {
            at = until(at, &|byte| !byte.is_ascii_whitespace() && byte != b'/')?;
            if text[at] == b'>' {
                return Some(Tag { name, attributes, length: at + 1 });
            }
            // An equals sign in the first place is a part of the name.
            let end = until(at + 1, &|byte| byte.is_ascii_whitespace() || b"/=>".contains(&byte))?;
            let key = word(at..end);
            at = until(end, &|byte| !byte.is_ascii_whitespace())?;
            if text[at] != b'=' {
                continue;
            }
            at = until(at + 1, &|byte| !byte.is_ascii_whitespace())?;
            let value = match text[at] {
                quote @ (b'"' | b'\'') => {
                    let end = until(at + 1, &|byte| byte == quote)?;
                    let value = at + 1..end;
                    at = end + 1;
                    value
                }
                _ => {
                    let end = until(at, &|byte| byte.is_ascii_whitespace() || byte == b'>')?;
                    let value = at..end;
                    at = end;
                    value
                }
            };
            attributes.push((key, value));
        }
    }
}

/// Where `wanted` is in a text, in letters of any size.
fn find(text: &[u8], wanted: &str) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), http::HeaderValue::from_static(value))).collect()
    }

    fn rewriter() -> LinkRewriter {
        let mut headers = headers(&[(header::CONTENT_TYPE, "text/html; charset=utf-8")]);
        LinkRewriter::of_page(&mut headers, "/p", "10.0.0.1:80", "server:6443").unwrap()
    }

    #[test]
    fn links_of_a_page_lead_through_the_proxy_however_it_is_cut() {
        let long = format!("<img src=\"data:{}\"><a href=\"/x\">", "x".repeat(MAX_TAG));
        let endless = "<a ".repeat(MAX_TAG / 2);
        for (page, expected) in [
            (r#"<a href="/x">test</a>"#, r#"<a href="/p/x">test</a>"#),
            ("<A class=b HREF='/x?a=b&amp;c' >", "<A class=b HREF='/p/x?a=b&amp;c' >"),
            ("<img alt=\"a > b\" src=/x/y/>", "<img alt=\"a > b\" src=/p/x/y/>"),
            ("<a href=\"http://10.0.0.1:80/x\">", "<a href=\"/p/x\">"),
            (
                "<a href=x><a href=\"//example.com/\"><a href='#'>",
                "<a href=x><a href=\"//example.com/\"><a href='#'>",
            ),
            ("<p title=\"/x\">1 < 2</p><a title=/x>", "<p title=\"/x\">1 < 2</p><a title=/x>"),
            ("<!-- <a href=\"/x\"> --><a href=\"/x\">", "<!-- <a href=\"/x\"> --><a href=\"/p/x\">"),
            ("<!--><a href=\"/x\">", "<!--><a href=\"/p/x\">"),
            (
                "<script src=\"/s\">\"<a href='/x'>\"</SCRIPT><a href=/x>",
                "<script src=\"/p/s\">\"<a href='/x'>\"</SCRIPT><a href=/p/x>",
            ),
            ("<!doctype html><base\nhref = \"/\"", "<!doctype html><base\nhref = \"/\""),
            (
                "<a href=\"\u{fffd}/x\" = =/ ><a href=\"/ö\"><",
                "<a href=\"\u{fffd}/x\" = =/ ><a href=\"/p/ö\"><",
            ),
            (&long, &long.replace("/x", "/p/x")),
            (&endless, &endless),
        ] {
            for length in [1, 3, 7, page.len()] {
                let mut rewriter = rewriter();
                let parts = page.as_bytes().chunks(length).flat_map(|part| rewriter.push(part));
                let mut found: Vec<u8> = parts.collect();
                found.extend(rewriter.finish());
                assert_eq!(String::from_utf8(found).unwrap(), expected, "parts of {length}");
            }
        }
    }

    #[test]
    fn only_pages_are_changed_and_their_length_is_no_longer_told() {
        let page = (header::CONTENT_TYPE, "text/html");
        let length = (header::CONTENT_LENGTH, "21");
        for (pairs, is_page) in [
            (&[page.clone(), length.clone()][..], true),
            (&[(header::CONTENT_TYPE, "text/plain"), length.clone()], false),
            (&[page.clone(), length.clone(), (header::CONTENT_ENCODING, "gzip")], false),
            (&[page, length.clone(), (header::LOCATION, "/x")], false),
            (&[length], false),
        ] {
            let mut headers = headers(pairs);
            assert_eq!(LinkRewriter::of_page(&mut headers, "/p", "", "").is_some(), is_page);
            assert_eq!(headers.contains_key(header::CONTENT_LENGTH), !is_page);
        }
    }
}
