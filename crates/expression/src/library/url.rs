//! `url('https://example.com/')` and the parts of a URL.

mod escape;
mod parse;

use std::collections::BTreeMap;

use super::{Function, Library, Outcome, Overload, charge};
use crate::{
    error::Error,
    ty::Type,
    value::{Key, Map, Opaque, Text, Value},
};
use parse::Url;
pub(super) use parse::request_uri_problem;

const URL: Type = Type::Opaque("kubernetes.URL");

impl Opaque for Url {
    fn ty(&self) -> Type {
        URL
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = (other as &dyn std::any::Any).downcast_ref::<Url>();
        other.is_some_and(|other| self.to_bytes() == other.to_bytes())
    }
}

pub(crate) fn library() -> Library {
    let query = Type::map(Type::String, Type::list(Type::String));
    let part =
        |name, id, result, body| Function::new(name, vec![Overload::member(id, vec![URL], result, body)]);
    let parse = Overload::global("string_to_url", vec![Type::String], URL, url)
        .costs(charge::walk)
        .estimated(charge::copy_estimate);
    Library {
        functions: vec![
            Function::new("url", vec![parse]),
            Function::new(
                "isURL",
                vec![Overload::global("is_url_string", vec![Type::String], Type::Bool, is_url)],
            ),
            part("getScheme", "url_get_scheme", Type::String, scheme),
            part("getHost", "url_get_host", Type::String, host),
            part("getHostname", "url_get_hostname", Type::String, hostname),
            part("getPort", "url_get_port", Type::String, port),
            part("getEscapedPath", "url_get_escaped_path", Type::String, escaped_path),
            part("getQuery", "url_get_query", query, get_query),
        ],
        ..Library::default()
    }
}

fn receiver<'v>(args: &'v [Value<'_>]) -> Result<&'v Url, Error> {
    args.first().and_then(Value::as_opaque).ok_or_else(Error::no_such_overload)
}

fn url<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    // Kubernetes: strict parsing first, then lenient, because only the latter handles fragments.
    let parsed = match request_uri_problem(text) {
        Some(problem) => Err(problem),
        None => Url::parse(text),
    };
    let refuse = |problem| Error::new(format!("URL parse error during conversion from string: {problem}"));
    Ok(Value::opaque(parsed.map_err(refuse)?))
}

fn is_url<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::Bool(request_uri_problem(text).is_none()))
}

fn scheme<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(receiver(args)?.scheme.as_str()))
}

fn host<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(text(&receiver(args)?.host)))
}

fn hostname<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(text(receiver(args)?.hostname())))
}

fn port<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(text(receiver(args)?.port())))
}

fn escaped_path<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(text(&receiver(args)?.escaped_path())))
}

fn get_query<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut values: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    for (key, value) in receiver(args)?.query() {
        values.entry(text(&key)).or_default().push(Value::string(text(&value)));
    }
    let entry = |(key, list): (String, Vec<_>)| (Key::String(Text::Shared(key.into())), Value::list(list));
    Ok(Value::Map(Map::new(values.into_iter().map(entry).collect())))
}

/// Unescaped bytes may be invalid UTF-8; here they become text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
