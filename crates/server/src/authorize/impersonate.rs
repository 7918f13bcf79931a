//! Impersonation: reads the headers, and returns the impersonated user if the caller may impersonate them.
//!
//! There are several modes. The constrained modes check both whether the caller may do this request while
//! impersonating, and whether they may impersonate that user; the legacy mode checks only the latter. The
//! mode that last allowed the caller is tried first. The first mode that allows counts; if none does, the
//! first rejection is answered.

use super::{Attributes, MASTERS, OnResource, demand, node};
use crate::{
    Inner,
    authenticate::{Caller, NODE_NAME},
    refusal::Refusal,
};
use api::{field::Path, go, name, name::Format};
use http::HeaderMap;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

const AUTHENTICATION: &str = "authentication.k8s.io";
/// From this many values on, `*` is checked first.
const MANY: usize = 4;
/// Kubernetes: limit on the callers whose last allowed mode is remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The modes, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    fn verb(self) -> String {
        if self == Mode::Legacy { "impersonate".to_owned() } else { format!("impersonate:{}", self.name()) }
    }

    /// The API group of users and groups.
    fn group(self) -> &'static str {
        if self == Mode::Legacy { "" } else { AUTHENTICATION }
    }

    /// Whether this mode applies to such a user.
    fn fits(self, caller: &Caller, wanted: &Caller) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node_of(&wanted.name), Caller::account_of(&wanted.name));
        match self {
            Mode::AssociatedNode => only_name && node.is_some() && node == associated_node(caller),
            Mode::ArbitraryNode => only_name && node.is_some(),
            Mode::ServiceAccount => only_name && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }
}

/// The mode that last allowed each caller: tried first, and its rejection is the one answered.
#[derive(Debug, Default)]
pub(super) struct LastAllowedModes(Mutex<BTreeMap<String, Mode>>);

impl LastAllowedModes {
    fn of(&self, caller: &str) -> Option<Mode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(caller).copied()
    }

    fn remember(&self, caller: &str, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if modes.get(caller) == Some(&mode) {
            return;
        }
        if modes.len() >= MAX_REMEMBERED {
            modes.clear();
        }
        modes.insert(caller.to_owned(), mode);
    }
}

fn node_of(user: &str) -> Option<&str> {
    user.strip_prefix(node::NODE_PREFIX).filter(|name| Format::Dns1123Subdomain.fits(name))
}

/// The node on which a service account's pod runs.
fn associated_node(caller: &Caller) -> Option<&str> {
    Caller::account_of(&caller.name)?;
    match caller.extra.get(NODE_NAME)?.as_slice() {
        [node] => Some(node),
        _ => None,
    }
}

/// The impersonated user.
#[derive(Debug)]
pub(crate) struct Acting {
    pub(crate) caller: Caller,
    /// The verb of the constrained mode that allowed it; empty for the legacy mode.
    pub(crate) constraint: String,
}

/// The user that the caller wants to impersonate, if allowed.
pub(super) async fn impersonate(
    inner: &Inner,
    caller: &Caller,
    wanted: &Caller,
    attributes: &Attributes<'_>,
) -> Result<Acting, Refusal> {
    let mut first_refusal = None;
    let modes = &inner.authorizer.impersonations;
    let usual = modes.of(&caller.name);
    let others = MODES.into_iter().filter(|mode| Some(*mode) != usual);
    for mode in usual.into_iter().chain(others).filter(|mode| mode.fits(caller, wanted)) {
        match Box::pin(try_mode(inner, mode, caller, wanted, attributes)).await {
            Ok(acting) => {
                modes.remember(&caller.name, mode);
                let constraint = if mode == Mode::Legacy { String::new() } else { mode.verb() };
                return Ok(Acting { caller: acting, constraint });
            }
            Err(refusal) => drop(first_refusal.get_or_insert(refusal)),
        }
    }
    Err(first_refusal.unwrap_or_else(|| Refusal::internal_error("all impersonation modes failed")))
}

/// The user in the headers, if any.
pub(super) fn wanted(headers: &HeaderMap) -> Result<Option<Caller>, Refusal> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(None);
    }
    let texts = |name: &str| {
        let values =
            headers.get_all(name).iter().map(|value| str::from_utf8(value.as_bytes()).map(str::to_owned));
        values
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| Refusal::bad_request(format!("the header {name} is no text")))
    };
    let one = |name: &str| match &texts(name)?[..] {
        [] => Ok(String::new()),
        [only] => Ok(only.clone()),
        // Ambiguous: some readers take the first header, others the last.
        _ => Err(Refusal::bad_request(format!("the header {name} is given more than once"))),
    };
    let mut wanted = Caller { name: one(USER)?, uid: one(UID)?, groups: texts(GROUP)?, ..Caller::default() };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for header in headers.keys() {
        let Some(key) = header.as_str().strip_prefix(EXTRA_PREFIX) else { continue };
        let key = crate::request::decode(key).unwrap_or_else(|| key.to_owned());
        extra.entry(key).or_default().extend(texts(header.as_str())?);
    }
    wanted.extra = extra;
    match wanted.name.is_empty() {
        false => Ok(Some(wanted)),
        true if wanted == Caller::default() => Ok(None),
        true => Err(Refusal::bad_request(format!(
            "requested {} without impersonating a user name",
            in_go(&wanted)
        ))),
    }
}

// Kubernetes: Go's `%#v` of the value.
fn in_go(user: &Caller) -> String {
    let list = |values: &[String]| match values {
        [] => "[]string(nil)".to_owned(),
        values => format!("[]string{{{}}}", go::quote_all(values)),
    };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let entries = user
                .extra
                .iter()
                .map(|(key, values)| format!("{}:[]string{{{}}}", go::quote(key), go::quote_all(values)));
            format!("map[string][]string{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    };
    let (name, uid) = (go::quote(&user.name), go::quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{}, Extra:{extra}}}", list(&user.groups))
}

/// Later stages do not see these headers.
pub(super) fn remove_headers(headers: &mut HeaderMap) {
    let names = headers.keys().filter(|name| {
        [USER, UID, GROUP].contains(&name.as_str()) || name.as_str().starts_with(EXTRA_PREFIX)
    });
    for name in names.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

async fn try_mode(
    inner: &Inner,
    mode: Mode,
    caller: &Caller,
    wanted: &Caller,
    attributes: &Attributes<'_>,
) -> Result<Caller, Refusal> {
    let caller = &seen_by(mode, caller);
    if mode != Mode::Legacy {
        let verb = |verb: &str| format!("impersonate-on:{}:{verb}", mode.name());
        match attributes {
            Attributes::Resource(wanted) => {
                let verb = verb(wanted.verb);
                demand(inner, caller, &Attributes::Resource(OnResource { verb: &verb, ..*wanted })).await?;
            }
            Attributes::Path { verb: method, path } => {
                demand(inner, caller, &Attributes::Path { verb: &verb(method), path }).await?;
            }
        }
    }
    let ask = UserChecks { inner, caller, mode, verb: mode.verb() };
    let groups = ask.user(wanted).await?;
    if !wanted.uid.is_empty() {
        ask.one(AUTHENTICATION, "uids", "", &wanted.uid).await?;
    }
    ask.groups(&wanted.groups).await?;
    ask.extra(&wanted.extra).await?;
    let mut user = Caller { groups, ..wanted.clone() };
    user.join();
    Ok(user)
}

/// Kubernetes: authorizers do not see the pod and node of a caller that impersonates that node.
fn seen_by(mode: Mode, caller: &Caller) -> Caller {
    let mut caller = caller.clone();
    if mode == Mode::AssociatedNode {
        let keys = caller.extra.keys().cloned().collect();
        caller.extra =
            BTreeMap::from([("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]);
    }
    caller
}

/// The checks whether the caller may impersonate a user.
struct UserChecks<'a> {
    inner: &'a Inner,
    caller: &'a Caller,
    mode: Mode,
    verb: String,
}

impl UserChecks<'_> {
    fn about<'a>(&'a self, group: &'a str, resource: &'a str, name: &'a str) -> OnResource<'a> {
        OnResource { verb: &self.verb, group, resource, name, ..OnResource::default() }
    }

    async fn one(&self, group: &str, resource: &str, subresource: &str, name: &str) -> Result<(), Refusal> {
        let wanted = OnResource { subresource, ..self.about(group, resource, name) };
        demand(self.inner, self.caller, &Attributes::Resource(wanted)).await
    }

    fn refuse(&self, wanted: OnResource<'_>, why: &str) -> Refusal {
        Attributes::Resource(wanted).denied(self.caller, why)
    }

    /// Returns the groups of the impersonated user.
    async fn user(&self, wanted: &Caller) -> Result<Vec<String>, Refusal> {
        let mut groups = wanted.groups.clone();
        let mut about = self.about(self.mode.group(), "users", &wanted.name);
        if let (Some(node), true) = (node_of(&wanted.name), self.mode != Mode::Legacy) {
            (about.resource, about.name) = ("nodes", node);
            groups = vec![node::NODES.to_owned()];
            if self.mode == Mode::AssociatedNode {
                about.name = "*";
            }
        }
        if let Some((namespace, name)) = Caller::account_of(&wanted.name) {
            (about.resource, about.namespace, about.name) = ("serviceaccounts", namespace, name);
            if groups.is_empty() {
                groups = Caller::account_groups(namespace);
            }
        }
        demand(self.inner, self.caller, &Attributes::Resource(about)).await?;
        Ok(groups)
    }

    async fn groups(&self, groups: &[String]) -> Result<(), Refusal> {
        let group = self.mode.group();
        if self.mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(self.refuse(self.about(group, "groups", ""), why));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refuse(self.about(group, "groups", MASTERS), why));
            }
            if groups.len() >= MANY && self.one(group, "groups", "", "*").await.is_ok() {
                return Ok(());
            }
        }
        for name in groups {
            self.one(group, "groups", "", name).await?;
        }
        Ok(())
    }

    async fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Refusal> {
        if self.mode != Mode::Legacy && !extra.is_empty() {
            if let Err(why) = check_extra(extra) {
                return Err(self.refuse(self.about(AUTHENTICATION, "userextras", ""), &why));
            }
            let is_large = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if is_large && self.one(AUTHENTICATION, "userextras", "*", "*").await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.one(AUTHENTICATION, "userextras", key, value).await?;
            }
        }
        Ok(())
    }
}

fn check_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        let path = Path::new("extra");
        let problems = name::domain_prefixed_path(&path.child("key"), key);
        match values {
            _ if key.is_empty() => {
                return Err("impersonating the empty string key in extra is not allowed".into());
            }
            _ if !problems.is_empty() => {
                return Err(format!("impersonating an invalid key in extra is not allowed: {problems}"));
            }
            _ if *key != key.to_lowercase() => {
                let key = go::quote(key);
                return Err(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
            }
            values if values.is_empty() => {
                return Err("impersonating empty values in extra is not allowed".into());
            }
            values if values.iter().any(String::is_empty) => {
                return Err("impersonating the empty string value in extra is not allowed".into());
            }
            _ => {}
        }
    }
    Ok(())
}
