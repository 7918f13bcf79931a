//! Get and list: bytes at rest in, bytes out.

use super::{Call, bad_options, store_failed};
use crate::{
    answer::{self, Body, ListMeta},
    request::Match,
    selection::Selection,
    stored::Stored,
};
use api::{
    field::{Error, ErrorList, Path},
    status::Status,
};
use base64::{
    DecodeError, Engine, alphabet,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD},
    },
};
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use store::{Range, Revision};

/// Objects looked at under one read of the store while a selector leaves out some.
const CHUNK: usize = 500;

/// Kubernetes: Go does not mind bits that are left over.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

pub(crate) async fn get(call: &Call) -> Result<Response<Body>, Status> {
    if let Some(future) = not_yet(call).await? {
        return Err(future);
    }
    let stored = find(call, &call.target.name).await?;
    if call.target.subresource == "scale" {
        let scale = crate::write::scale::of(call, &stored).await?;
        return Ok(answer::scale(call, &scale));
    }
    answer::object(call, StatusCode::OK, &stored).await
}

/// The latest state of an object.
pub(crate) async fn find(call: &Call, name: &str) -> Result<Stored, Status> {
    let read = call.inner.store.get(call.key(name), None).await.map_err(|error| store_failed(&error))?;
    let entry = read.entry.ok_or_else(|| call.not_found(name))?;
    Ok(Stored::new(entry.value, entry.revision))
}

/// Refuses a resourceVersion that has not happened yet.
async fn not_yet(call: &Call) -> Result<Option<Status>, Status> {
    let Some(asked) =
        revision(&call.options.resource_version).map_err(|problem| match call.target.name.as_str() {
            "" => Status::bad_request(format!("invalid resource version: {problem}")),
            // Kubernetes: a get passes on what the storage says.
            _ => Status::unclassified(problem),
        })?
    else {
        return Ok(None);
    };
    let current = call.inner.store.revision().await.map_err(|error| store_failed(&error))?;
    Ok((asked > current).then(|| Status::too_large_resource_version(asked.0, current.0, 1)))
}

fn revision(text: &str) -> Result<Option<Revision>, String> {
    match text {
        "" | "0" => Ok(None),
        text => text.parse().map(|number| Some(Revision(number))).map_err(|_| {
            let path = Path::new("resourceVersion");
            Error::invalid(&path, text, format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
                .to_string()
        }),
    }
}

pub(crate) async fn list(call: &Call) -> Result<Response<Body>, Status> {
    check_options(call)?;
    let selection = Selection::new(call)?;
    let (meta, objects) = collect(call, &selection).await?;
    answer::list(call, &meta, &objects).await
}

/// Options that do not go together.
pub(crate) fn check_options(call: &Call) -> Result<(), Status> {
    let options = &call.options;
    let mut errors = ErrorList::new();
    let match_path = Path::new("resourceVersionMatch");
    if let Some(wanted) = &options.version_match {
        if options.resource_version.is_empty() {
            errors.push(Error::forbidden(
                &match_path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !options.continue_token.is_empty() {
            errors.push(Error::forbidden(
                &match_path,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if let Match::Unknown(text) = wanted {
            errors.push(Error::not_supported(&match_path, text.as_str(), ["Exact", "NotOlderThan", ""]));
        }
        if *wanted == Match::Exact && options.resource_version == "0" {
            errors.push(Error::forbidden(
                &match_path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if options.initial_events.is_some() {
        errors.push(Error::forbidden(
            &Path::new("sendInitialEvents"),
            "sendInitialEvents is forbidden for list",
        ));
    }
    bad_options("ListOptions", errors)
}

/// Where a list goes on.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Continue {
    v: String,
    rv: i64,
    start: String,
}

impl Continue {
    // Kubernetes: the version of the token's own format.
    const VERSION: &str = "meta.k8s.io/v1";

    fn parse(token: &str) -> Result<Continue, Status> {
        let invalid = |problem: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {problem}"))
        };
        let bytes = LENIENT.decode(token).map_err(|error| match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLength(at) => {
                invalid(format!("illegal base64 data at input byte {at}"))
            }
            _ => invalid(format!("illegal base64 data at input byte {}", token.len())),
        })?;
        let token: Continue = serde_json::from_slice(&bytes).map_err(|_| {
            let first = bytes.first().map(|byte| char::from(*byte)).unwrap_or_default();
            invalid(format!("invalid character {} looking for beginning of value", quote_rune(first)))
        })?;
        if token.v != Continue::VERSION {
            return Err(invalid(format!("server does not recognize this encoded version {}", token.v)));
        }
        Ok(token)
    }

    fn text(start: &str, revision: Revision) -> String {
        let token =
            Continue { v: Continue::VERSION.to_owned(), rv: revision.0 as i64, start: start.to_owned() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }
}

/// A character as Go quotes it.
fn quote_rune(rune: char) -> String {
    match u32::from(rune) {
        code @ 0..0x20 => format!("'\\x{code:02x}'"),
        code @ (0x7f..0xa1) => format!("'\\u{code:04x}'"),
        _ => format!("'{rune}'"),
    }
}

/// Reads what a list asks for.
pub(crate) async fn collect(call: &Call, selection: &Selection) -> Result<(ListMeta, Vec<Stored>), Status> {
    let options = &call.options;
    let prefix = call.served.prefix(&call.target.namespace);
    let mut range = Range::prefix(prefix.clone());
    let mut token = None;
    if options.continue_token.is_empty() {
        if let Some(future) = not_yet(call).await? {
            return Err(future);
        }
        let asked = revision(&options.resource_version).map_err(Status::bad_request)?;
        // Kubernetes: with a limit, a version that is named is the exact one unless said otherwise.
        let exact = options.version_match == Some(Match::Exact)
            || (options.version_match.is_none() && options.limit > 0 && asked.is_some());
        range.at = asked.filter(|_| exact);
    } else {
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let from = Continue::parse(&options.continue_token)?;
        range.at = u64::try_from(from.rv).ok().filter(|revision| *revision > 0).map(Revision);
        range = range.from(format!("{prefix}{}", from.start));
        token = Some(from);
    }
    // Kubernetes: what comes from a cache comes whole.
    let is_cached = options.resource_version == "0" && options.continue_token.is_empty();
    let limit = if is_cached { 0 } else { usize::try_from(options.limit).unwrap_or(usize::MAX) };
    let mut objects = Vec::new();
    loop {
        let page_size = if limit == 0 { 0 } else { (limit - objects.len()).max(CHUNK.min(limit)) };
        let page = call.inner.store.range(range.clone().limit(page_size)).await;
        let page = page.map_err(|error| expired(&error, token.as_ref()))?;
        range.at = Some(page.revision);
        let mut last = None;
        for entry in page.entries {
            if limit > 0 && objects.len() == limit {
                break;
            }
            let stored = Stored::new(entry.value, entry.revision);
            last = Some(entry.key);
            if selection.matches(&stored) {
                objects.push(stored);
            }
        }
        let mut meta = ListMeta { revision: page.revision, ..ListMeta::default() };
        let Some(last) = last else { return Ok((meta, objects)) };
        range = range.after(&last);
        if limit == 0 {
            return Ok((meta, objects));
        }
        if objects.len() == limit {
            let rest = call.inner.store.count(range.clone()).await.map_err(|error| store_failed(&error))?;
            if rest == 0 {
                return Ok((meta, objects));
            }
            let start = String::from_utf8_lossy(&range.start).into_owned();
            meta.continue_token =
                Continue::text(start.strip_prefix(&prefix).unwrap_or(&start), page.revision);
            // Kubernetes: with selectors nobody knows how many remain.
            meta.remaining = selection.is_everything().then_some(rest);
            return Ok((meta, objects));
        }
        if !page.more {
            return Ok((meta, objects));
        }
    }
}

/// A list at a revision that is gone: the caller may go on from the same place, at the latest one.
fn expired(error: &store::Error, token: Option<&Continue>) -> Status {
    match (error, token) {
        (store::Error::Compacted { .. }, Some(token)) => {
            let fresh = Continue { v: token.v.clone(), rv: -1, start: token.start.clone() };
            Status::continue_expired(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&fresh).unwrap_or_default()))
        }
        (store::Error::Compacted { asked, floor }, None) => {
            Status::too_old_resource_version(asked.0, floor.0)
        }
        _ => store_failed(error),
    }
}
