//! Get and list: answer from the stored bytes.

use crate::{
    answer::{self, Body, ListMeta},
    call::Call,
    lookup,
    refusal::{self, Refusal},
    request::{Match, flag},
    selection::Selection,
    stored::Stored,
};
use api::{
    field::{Error, ErrorList, Path},
    go,
    name::Format,
};
use continue_token::Continue;
use http::{Response, StatusCode};
use store::{Range, Revision};

mod continue_token;

/// Objects read from the store at once when a selector may skip some.
const CHUNK: usize = 500;

pub(crate) async fn get(call: &Call) -> Result<Response<Body>, Refusal> {
    if call.options.rest.get("export").is_some_and(|export| flag(export)) {
        let problem = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Refusal::bad_request(problem));
    }
    if let Some(future) = future_version(call).await? {
        return Err(future);
    }
    let stored = lookup::find(call, &call.target.name).await?;
    if call.target.subresource == "scale" {
        let scale = crate::write::scale::of(call, &stored).await?;
        return answer::scale(call, &scale);
    }
    answer::object(call, StatusCode::OK, &stored).await
}

/// The error for a resourceVersion that is later than the store's revision.
async fn future_version(call: &Call) -> Result<Option<Refusal>, Refusal> {
    let Some(wanted) =
        revision(&call.options.resource_version).map_err(|problem| match call.target.name.as_str() {
            "" => Refusal::bad_request(format!("invalid resource version: {problem}")),
            // Kubernetes: a get answers with the storage's text.
            _ => Refusal::unclassified(problem),
        })?
    else {
        return Ok(None);
    };
    let current = call.inner.store.revision().await?;
    Ok((wanted > current).then(|| Refusal::too_large_resource_version(wanted.0, current.0, 1)))
}

/// Parses a resourceVersion; `None` for any version.
pub(super) fn revision(text: &str) -> Result<Option<Revision>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match go::parse_uint(text) {
        Ok(0) => Ok(None),
        Ok(number) => Ok(Some(Revision(number))),
        Err(problem) => Err(Error::invalid(&Path::new("resourceVersion"), text, problem).to_string()),
    }
}

pub(crate) async fn list(call: &Call) -> Result<Response<Body>, Refusal> {
    check_options(call)?;
    let selection = Selection::new(call)?;
    let (meta, objects) = collect(call, &selection).await?;
    answer::list(call, &meta, objects).await
}

/// Rejects options that do not go together.
pub(crate) fn check_options(call: &Call) -> Result<(), Refusal> {
    let options = &call.options;
    options.check_selection()?;
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
    refusal::check_options("ListOptions", errors)
}

/// What a list reads: from where, at which revision, and how many objects at most.
struct ListRange {
    prefix: String,
    range: Range,
    /// 0 for all.
    limit: usize,
    token: Option<Continue>,
}

impl ListRange {
    async fn of(call: &Call, selection: &Selection) -> Result<ListRange, Refusal> {
        let options = &call.options;
        let prefix = call.served.prefix(&call.target.namespace);
        let mut range = Range::prefix(prefix.clone());
        let mut token = None;
        // Kubernetes: a list from the watch cache ignores the limit.
        let is_cached = options.resource_version == "0" && options.continue_token.is_empty();
        let mut limit = if is_cached { 0 } else { options.limit };
        if let Some(name) = single(call, selection) {
            range = Range::prefix(call.served.key(&call.target.namespace, name));
            limit = 0;
        }
        if options.continue_token.is_empty() {
            if let Some(future) = future_version(call).await? {
                return Err(future);
            }
            let wanted = revision(&options.resource_version).map_err(Refusal::bad_request)?;
            // Kubernetes: with a limit, a resourceVersion means exactly that one unless resourceVersionMatch
            // says otherwise.
            let exact = options.version_match == Some(Match::Exact)
                || (options.version_match.is_none() && limit > 0 && wanted.is_some());
            range.at = wanted.filter(|_| exact);
        } else {
            let from = Continue::parse(&options.continue_token)?;
            if !options.resource_version.is_empty() && options.resource_version != "0" {
                return Err(Refusal::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            range.at = u64::try_from(from.rv).ok().filter(|revision| *revision > 0).map(Revision);
            range = range.from(format!("{prefix}{}", from.start));
            token = Some(from);
        }
        Ok(ListRange { prefix, range, limit: usize::try_from(limit).unwrap_or(usize::MAX), token })
    }
}

/// Reads the objects of a list.
pub(crate) async fn collect(call: &Call, selection: &Selection) -> Result<(ListMeta, Vec<Stored>), Refusal> {
    let ListRange { prefix, mut range, limit, token } = ListRange::of(call, selection).await?;
    let mut objects = Vec::new();
    loop {
        let page_size = if limit == 0 { 0 } else { (limit - objects.len()).max(CHUNK.min(limit)) };
        let page = call.inner.store.range(range.clone().limit(page_size)).await;
        let page = page.map_err(|error| expired(error, token.as_ref()))?;
        range.at = Some(page.revision);
        let mut last = None;
        let (keys, found): (Vec<_>, Vec<_>) = page
            .entries
            .into_iter()
            .map(|entry| (entry.key, Stored::new(entry.value, entry.revision)))
            .unzip();
        let selected = selection.select(&call.inner, &found.iter().collect::<Vec<_>>()).await?;
        for ((key, stored), is_selected) in keys.into_iter().zip(found).zip(selected) {
            if limit > 0 && objects.len() == limit {
                break;
            }
            last = Some(key);
            if is_selected {
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
            let rest = call.inner.store.count(range.clone()).await?;
            if rest == 0 {
                return Ok((meta, objects));
            }
            let start = String::from_utf8_lossy(&range.start).into_owned();
            meta.continue_token =
                Continue::text(start.strip_prefix(&prefix).unwrap_or(&start), page.revision);
            // Kubernetes: remainingItemCount is unknown with selectors.
            meta.remaining = selection.is_everything().then_some(rest);
            return Ok((meta, objects));
        }
        if !page.more {
            return Ok((meta, objects));
        }
    }
}

/// The name of the only object that the selectors can match.
fn single<'s>(call: &Call, selection: &'s Selection) -> Option<&'s str> {
    let is_placed = !call.served.is_namespaced() || !call.target.namespace.is_empty();
    let name = selection.required_name().filter(|name| !name.is_empty() && Format::PathSegment.fits(name));
    name.filter(|_| is_placed && call.options.continue_token.is_empty())
}

/// The error for a compacted revision: the client may continue from the same key at the latest revision.
fn expired(error: store::Error, token: Option<&Continue>) -> Refusal {
    match (error, token) {
        // A token from the future may be older than a restored backup: the list must restart, too.
        (store::Error::Compacted { .. } | store::Error::Future { .. }, Some(token)) => {
            Refusal::continue_expired(token.at_latest())
        }
        (store::Error::Compacted { .. }, None) => Refusal::list_expired(),
        (error, _) => error.into(),
    }
}
