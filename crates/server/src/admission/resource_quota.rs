//! ResourceQuota: limits what a namespace may use in total. Usage is written in the same commit as the
//! object that uses it.
//!
//! So two writes never share the last free unit, only stored objects are charged, and a delete gives back
//! at once. In Kubernetes a controller counts; here usage is counted when a quota is created or changed,
//! and before a write is rejected. Writes to a namespace wait while it is counted: without quotas writes
//! run in parallel, and the first count waits for them.

mod running;
mod scope;
pub(crate) mod status;
mod usage;

use super::{AdmissionPlugin, pod_resources::Amounts};
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

/// Locks for namespaces; namespaces that share a lock wait for each other.
const PLACES: usize = 64;

const QUOTAS: (&str, &str, &str) = ("", "v1", "resourcequotas");

/// Kubernetes: these come and go too fast to be counted.
const UNCOUNTED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

/// Which namespaces have quotas, and the locks of namespaces.
#[derive(Debug)]
pub(crate) struct Quotas {
    known: Live<QuotaKeys>,
    places: Vec<RwLock<()>>,
}

/// The keys of all quotas.
#[derive(Debug, Default)]
struct QuotaKeys(BTreeSet<String>);

/// The right to write objects that count in a namespace.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    call: &'a Call,
    right: QuotaLock<'a>,
}

#[derive(Debug)]
enum QuotaLock<'a> {
    /// The write does not count for any quota.
    Any,
    /// The namespace has no quota, and counting for a first one waits for this write.
    Together { _place: RwLockReadGuard<'a, ()> },
    /// One writer at a time, so that only other replicas can cause conflicts.
    Alone { _place: RwLockWriteGuard<'a, ()> },
}

/// Quota updates for the commit of the write.
#[derive(Debug, Default)]
pub(crate) struct Charge(Vec<(Bytes, Bytes, Revision)>);

/// A quota that a write counts for.
#[derive(Debug)]
struct Ledger {
    entry: Entry,
    quota: Value,
    hard: Amounts,
    used: Amounts,
    /// Whether `used` was just counted from the objects.
    is_counted: bool,
    /// The object's usage before and after the write.
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

    /// Whether a conflict at this key is with a quota.
    pub(crate) fn is_about(&self, key: &[u8]) -> bool {
        self.0.iter().any(|(own, ..)| own == key)
    }
}

/// Waits for the right to write.
pub(crate) async fn turn(call: &Call) -> Result<Turn<'_>, Refusal> {
    let (inner, namespace) = (&*call.inner, call.target.namespace.as_str());
    let is_counted = !UNCOUNTED.iter().any(|(group, resource)| call.served.is(group, resource));
    let is_on = inner.admission_plugins.has(AdmissionPlugin::ResourceQuota);
    if !is_on || namespace.is_empty() || !is_counted {
        return Ok(Turn { call, right: QuotaLock::Any });
    }
    let _place = namespace_lock(inner, namespace).read().await;
    // In this order: a request that now creates the first quota waits for this write, and counts it.
    if !has_quotas(inner, namespace).await? {
        return Ok(Turn { call, right: QuotaLock::Together { _place } });
    }
    drop(_place);
    Ok(Turn { call, right: QuotaLock::Alone { _place: namespace_lock(inner, namespace).write().await } })
}

async fn has_quotas(inner: &Inner, namespace: &str) -> Result<bool, Refusal> {
    let Some(served) = quotas(inner) else { return Ok(false) };
    let prefix = served.prefix(namespace);
    let found = inner.quotas.known.look(&*inner.store, |known| {
        known.0.range(prefix.clone()..).next().is_some_and(|key| key.starts_with(&prefix))
    });
    found.await.map_err(Refusal::from)
}

/// The lock of a namespace: shared by writes that no quota counts; held alone by a counted write, and by a count.
pub(crate) fn namespace_lock<'a>(inner: &'a Inner, namespace: &str) -> &'a RwLock<()> {
    let spread = |sum: usize, byte: u8| sum.wrapping_mul(31).wrapping_add(usize::from(byte));
    let at = namespace.bytes().fold(0, spread) % PLACES;
    &inner.quotas.places[at]
}

fn quotas(inner: &Inner) -> Option<&Arc<Served>> {
    let (group, version, resource) = QUOTAS;
    inner.registry.find(group, version, resource)
}

impl Turn<'_> {
    /// Whether the namespace has quotas.
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self.right, QuotaLock::Alone { .. })
    }

    /// The effect of a write on its namespace's quotas; an error where one is exceeded.
    pub(crate) async fn charge(&self, old: Option<&Value>, new: Option<&Value>) -> Result<Charge, Refusal> {
        let mut charge = Charge::default();
        if !self.is_limited() {
            return Ok(charge);
        }
        let mut ledgers = self.ledgers(old, new).await?;
        let Some(served) = quotas(&self.call.inner) else { return Ok(charge) };
        if let Some(new) = new.filter(|new| self.is_checked(old, new)) {
            self.check_required(&ledgers, new)?;
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

    /// Kubernetes: only some writes can be rejected; others are only counted.
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

    /// The quotas that the write counts for.
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
            let hard = status::hard(&quota);
            let is_limited = hard.keys().any(|name| CountedResource::behind(name) == Some(sort));
            // A write to a quota is not charged to that quota itself.
            let is_itself = own.as_ref() == Some(&entry.key);
            if is_itself || !is_limited {
                continue;
            }
            let usage = |object: &Value| scope::covers(&quota, sort, object).then(|| sort.usage(object, now));
            let (before, after) = (old.and_then(usage), new.and_then(usage));
            if before == after {
                continue;
            }
            // Since it was counted, a pod that is stuck in deletion has stopped counting: the known usage is not that
            // of now.
            let has_lapsed = old.is_some_and(|old| sort.is("pods") && usage::has_lapsed(old, now));
            let (used, is_counted) = match known_usage(&quota, &hard).filter(|_| !has_lapsed) {
                Some(used) => (used, false),
                None => (count(inner, namespace, &quota, &hard).await?, true),
            };
            ledgers.push(Ledger { entry, quota, hard, used, is_counted, before, after });
        }
        Ok(ledgers)
    }

    /// Kubernetes: a quota on CPU or memory requires every container to set it.
    fn check_required(&self, ledgers: &[Ledger], new: &Value) -> Result<(), Refusal> {
        let covering = ledgers.iter().filter(|ledger| ledger.after.is_some() && self.sort().is("pods"));
        for ledger in covering {
            if let Some(open) = usage::missing_resources(new, ledger.hard.keys().map(String::as_str)) {
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
    /// What the write uses more than before.
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

    /// The limits that the write exceeds.
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

    /// The usage after the write.
    fn next(&self) -> Amounts {
        let mut used = self.used.clone();
        for (name, amount) in self.after.iter().flatten().filter(|(name, _)| self.hard.contains_key(*name)) {
            *used.entry(name.clone()).or_default() += amount;
        }
        for (name, amount) in self.before.iter().flatten().filter(|(name, _)| self.hard.contains_key(*name)) {
            *used.entry(name.clone()).or_default() -= amount;
        }
        // Usage is never negative, even if a quota's status was edited by hand.
        used.values_mut()
            .filter(|amount| amount.is_negative())
            .for_each(|amount| *amount = Default::default());
        used
    }
}
