//! ResourceQuota: what a namespace may have in all. What is used is written in the same commit as what uses it.
//!
//! So no two writes ever share the last of something, nothing is charged that was not made, and what goes is given
//! back at once. In Kubernetes a controller counts; here that is done where a quota is new or changed, and before
//! anybody is refused. Nothing is written while somebody counts: where there are no quotas writes go side by side, and
//! a first count waits for them.

mod running;
mod scope;
mod status;
mod usage;

pub(crate) use status::{after, concerns};

use super::pod_resources::{self, Amounts};
use crate::{
    Inner,
    call::Call,
    live::{Fold, Live},
    refusal::Refusal,
    served::Served,
    stored::{Stored, at_rest},
};
use api::object;
use bytes::Bytes;
use serde_json::Value;
use status::{count, known_usage, with_usage};
use std::{collections::BTreeSet, sync::Arc};
use store::{Batch, Entry, Range, Revision};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use usage::CountedResource;

/// How many namespaces can be charged at the same time; those that share a place wait for each other.
const PLACES: usize = 64;

const QUOTAS: (&str, &str, &str) = ("", "v1", "resourcequotas");

/// Kubernetes: these come and go too fast to be counted.
const UNCOUNTED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

/// Who has quotas, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Quotas {
    known: Live<QuotaKeys>,
    places: Vec<RwLock<()>>,
}

/// The keys of all quotas.
#[derive(Debug, Default)]
struct QuotaKeys(BTreeSet<String>);

/// The right to change what counts in a namespace.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    call: &'a Call,
    right: Right<'a>,
}

#[derive(Debug)]
enum Right<'a> {
    /// Nothing that is written counts.
    Any,
    /// Nothing is limited, and nobody starts to count meanwhile.
    Together { _place: RwLockReadGuard<'a, ()> },
    /// One at a time, so that nobody loses a race but to other replicas.
    Alone { _place: RwLockWriteGuard<'a, ()> },
}

/// What quotas have to say after a write, for the same commit.
#[derive(Debug, Default)]
pub(crate) struct Charge(Vec<(Bytes, Bytes, Revision)>);

/// A quota that a write is the business of.
#[derive(Debug)]
struct Ledger {
    entry: Entry,
    quota: Value,
    hard: Amounts,
    used: Amounts,
    /// Whether `used` was counted just now.
    is_counted: bool,
    /// What the object counts for as it was, and as it is to be.
    before: Option<Amounts>,
    after: Option<Amounts>,
}

impl Default for Quotas {
    fn default() -> Quotas {
        let places = (0..PLACES).map(|_| RwLock::default()).collect();
        Quotas { known: Live::new("/registry/resourcequotas/", QuotaKeys::default()), places }
    }
}

impl Fold for QuotaKeys {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn put(&mut self, key: &str, _: Stored) {
        self.0.insert(key.to_owned());
    }

    fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }
}

impl Charge {
    pub(crate) fn add_to(&self, batch: Batch) -> Batch {
        let writes = self.0.iter();
        writes.fold(batch, |batch, (key, json, at)| batch.replace(key.clone(), json.clone(), *at))
    }

    /// Whether a conflict at this key is one of quotas.
    pub(crate) fn is_about(&self, key: &[u8]) -> bool {
        self.0.iter().any(|(own, ..)| own == key)
    }
}

/// Waits for the right to write.
pub(crate) async fn turn(call: &Call) -> Result<Turn<'_>, Refusal> {
    let (inner, namespace) = (&*call.inner, call.target.namespace.as_str());
    let is_counted = !UNCOUNTED.iter().any(|(group, resource)| call.served.is(group, resource));
    if namespace.is_empty() || !is_counted {
        return Ok(Turn { call, right: Right::Any });
    }
    let _place = place(inner, namespace).read().await;
    // In this order: whoever makes the first quota now waits until this is written, and counts it.
    if !has_quotas(inner, namespace).await? {
        return Ok(Turn { call, right: Right::Together { _place } });
    }
    drop(_place);
    Ok(Turn { call, right: Right::Alone { _place: place(inner, namespace).write().await } })
}

async fn has_quotas(inner: &Inner, namespace: &str) -> Result<bool, Refusal> {
    let Some(served) = quotas(inner) else { return Ok(false) };
    let prefix = served.prefix(namespace);
    let found = inner.quotas.known.look(&*inner.store, |known| {
        known.0.range(prefix.clone()..).next().is_some_and(|key| key.starts_with(&prefix))
    });
    found.await.map_err(Refusal::from)
}

fn place<'a>(inner: &'a Inner, namespace: &str) -> &'a RwLock<()> {
    let spread = |sum: usize, byte: u8| sum.wrapping_mul(31).wrapping_add(usize::from(byte));
    let at = namespace.bytes().fold(0, spread) % PLACES;
    &inner.quotas.places[at]
}

fn quotas(inner: &Inner) -> Option<&Arc<Served>> {
    let (group, version, resource) = QUOTAS;
    inner.registry.find(group, version, resource)
}

impl Turn<'_> {
    /// Whether there are quotas that may have something to say.
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self.right, Right::Alone { .. })
    }

    /// What a write does to the quotas of its namespace; a refusal where one of them has not enough left.
    pub(crate) async fn charge(&self, old: Option<&Value>, new: Option<&Value>) -> Result<Charge, Refusal> {
        let mut charge = Charge::default();
        if !self.is_limited() {
            return Ok(charge);
        }
        let mut ledgers = self.ledgers(old, new).await?;
        let Some(served) = quotas(&self.call.inner) else { return Ok(charge) };
        if let Some(new) = new.filter(|new| self.is_checked(old, new)) {
            self.check_said(&ledgers, new)?;
            for ledger in &mut ledgers {
                self.check_room(ledger, new).await?;
            }
        }
        for ledger in ledgers {
            let used = ledger.next();
            if used != ledger.used || ledger.is_counted {
                let json = at_rest(served, &mut with_usage(ledger.quota, &used));
                charge.0.push((ledger.entry.key, json, ledger.entry.revision));
            }
        }
        Ok(charge)
    }

    fn sort(&self) -> CountedResource<'_> {
        let resource = &self.call.served.resource;
        CountedResource { group: &resource.group, resource: &resource.name }
    }

    /// Kubernetes: only some writes can be refused; all others just count.
    fn is_checked(&self, old: Option<&Value>, new: &Value) -> bool {
        let subresource = self.call.target.subresource.as_str();
        match (&*self.call.served.resource.name, subresource) {
            ("pods", "resize") => old.is_some(),
            ("pods", "") => old.is_none_or(|old| scope::has_deadline(old) != scope::has_deadline(new)),
            ("services" | "persistentvolumeclaims" | "resourceclaims", "") => true,
            (_, "") => old.is_none(),
            _ => false,
        }
    }

    /// The quotas that the write is the business of.
    async fn ledgers(&self, old: Option<&Value>, new: Option<&Value>) -> Result<Vec<Ledger>, Refusal> {
        let (call, sort) = (self.call, self.sort());
        let (inner, namespace) = (&*call.inner, call.target.namespace.as_str());
        let Some(served) = quotas(inner) else { return Ok(Vec::new()) };
        let page = inner.store.range(Range::prefix(served.prefix(namespace))).await;
        let own = new.or(old).map(|object| call.key(object::name(object)));
        let now = inner.world.wall();
        let mut ledgers = Vec::new();
        for entry in page?.entries {
            let quota = Stored::new(entry.value.clone(), entry.revision).value()?;
            let hard = pod_resources::amounts(&quota["spec"], "hard");
            let is_limited = hard.keys().any(|name| CountedResource::behind(name) == Some(sort));
            // A quota that goes takes its own account with it.
            let is_itself = own.as_ref() == Some(&entry.key);
            if is_itself || !is_limited {
                continue;
            }
            let usage = |object: &Value| scope::covers(&quota, sort, object).then(|| sort.usage(object, now));
            let (before, after) = (old.and_then(usage), new.and_then(usage));
            if before == after {
                continue;
            }
            let (used, is_counted) = match known_usage(&quota, &hard) {
                Some(used) => (used, false),
                None => (count(inner, namespace, &quota, &hard).await?, true),
            };
            ledgers.push(Ledger { entry, quota, hard, used, is_counted, before, after });
        }
        Ok(ledgers)
    }

    /// Kubernetes: who limits processors or memory wants every container to say how much.
    fn check_said(&self, ledgers: &[Ledger], new: &Value) -> Result<(), Refusal> {
        let covering = ledgers.iter().filter(|ledger| ledger.after.is_some() && self.sort().is("pods"));
        for ledger in covering {
            if let Some(open) = usage::left_open(new, ledger.hard.keys().map(String::as_str)) {
                return Err(
                    self.forbidden(new, format!("failed quota: {}: {open}", object::name(&ledger.quota)))
                );
            }
        }
        Ok(())
    }

    async fn check_room(&self, ledger: &mut Ledger, new: &Value) -> Result<(), Refusal> {
        if !ledger.exceeded().is_empty() && !ledger.is_counted {
            let namespace = self.call.target.namespace.as_str();
            ledger.used = count(&self.call.inner, namespace, &ledger.quota, &ledger.hard).await?;
            ledger.is_counted = true;
        }
        let exceeded = ledger.exceeded();
        if exceeded.is_empty() {
            return Ok(());
        }
        let shown = |amounts: &Amounts| {
            let listed = exceeded.iter().filter_map(|name| Some((name, amounts.get(name)?)));
            listed.map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(",")
        };
        Err(self.forbidden(
            new,
            format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                object::name(&ledger.quota),
                shown(&ledger.requested()),
                shown(&ledger.used),
                shown(&ledger.hard)
            ),
        ))
    }

    fn forbidden(&self, new: &Value, cause: String) -> Refusal {
        Refusal::forbidden(&self.call.resource(), object::name(new), cause)
    }
}

impl Ledger {
    /// What the write needs more than before.
    fn requested(&self) -> Amounts {
        let mut requested = Amounts::new();
        for (name, amount) in self.after.iter().flatten().filter(|(name, _)| self.hard.contains_key(*name)) {
            let mut more = amount.clone();
            if let Some(had) = self.before.as_ref().and_then(|before| before.get(name)) {
                more -= had;
            }
            if !more.is_zero() && !more.is_negative() {
                requested.insert(name.clone(), more);
            }
        }
        requested
    }

    /// What there is not enough of.
    fn exceeded(&self) -> Vec<String> {
        let mut exceeded = Vec::new();
        for (name, amount) in self.requested() {
            let mut total = self.used.get(&name).cloned().unwrap_or_default();
            total += &amount;
            if self.hard.get(&name).is_some_and(|hard| total > *hard) {
                exceeded.push(name);
            }
        }
        exceeded
    }

    /// What is used after the write.
    fn next(&self) -> Amounts {
        let mut used = self.used.clone();
        for (name, amount) in self.after.iter().flatten().filter(|(name, _)| self.hard.contains_key(*name)) {
            *used.entry(name.clone()).or_default() += amount;
        }
        for (name, amount) in self.before.iter().flatten().filter(|(name, _)| self.hard.contains_key(*name)) {
            *used.entry(name.clone()).or_default() -= amount;
        }
        // Nobody can have used less than nothing, whatever was written into a quota by hand.
        used.values_mut()
            .filter(|amount| amount.is_negative())
            .for_each(|amount| *amount = Default::default());
        used
    }
}
