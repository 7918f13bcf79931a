//! Turns repeated events into series, and limits the events of each object: client-go's event correlator.
//!
//! An event that is repeated within [`SILENCE`] belongs to the same series. The second is written at once;
//! later ones are counted here, and the count is written each [`REFRESH`] and when the series ends.

use super::{EventType, writer::EventWrite};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use std::{collections::BTreeMap, time::Duration};

/// Kubernetes: a series ends after six quiet minutes.
pub(super) const SILENCE: Duration = Duration::from_secs(6 * 60);
/// Kubernetes: a running series is written each half hour.
pub(super) const REFRESH: Duration = Duration::from_secs(30 * 60);
/// Kubernetes: an object may have 25 writes at once, and one each five minutes from then on.
pub(super) const BURST: u32 = 25;
pub(super) const REFILL: Duration = Duration::from_secs(5 * 60);
/// Kubernetes keeps 4096 of each; the one that was used least recently is dropped.
pub(super) const SERIES: usize = 4096;
pub(super) const BUDGETS: usize = 4096;

/// An event as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewEvent {
    pub(super) regarding: ObjectReference,
    pub(super) event_type: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
    pub(super) at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Correlator {
    series: BTreeMap<SeriesKey, OpenSeries>,
    budgets: BTreeMap<ObjectId, Budget>,
    last_id: u64,
}

/// An object without its resourceVersion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId([Option<String>; 6]);

/// What the events of a series have in common: all but time and note.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeriesKey(ObjectId, EventType, String, String);

#[derive(Debug)]
struct OpenSeries {
    id: u64,
    name: Option<String>,
    first: NewEvent,
    count: i32,
    last: Timestamp,
    last_seen: Duration,
    written: i32,
    last_written: Duration,
}

#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    /// The time up to which refills are included.
    filled: Duration,
}

impl Correlator {
    /// Adds an event, and returns what to write now; `now` is the time since the correlator was made.
    pub(super) fn add(&mut self, now: Duration, event: NewEvent) -> Option<EventWrite<u64>> {
        let object = ObjectId::of(&event.regarding);
        let key = SeriesKey(object.clone(), event.event_type, event.reason.clone(), event.action.clone());
        if let Some(series) = self.series.get_mut(&key).filter(|series| !series.is_over(now)) {
            series.count = series.count.saturating_add(1);
            series.last = event.at;
            series.last_seen = now;
            let is_second = series.written == 1;
            return (is_second && afford(&mut self.budgets, object, now)).then(|| series.write(now));
        }
        if !afford(&mut self.budgets, object, now) {
            return None;
        }
        self.last_id += 1;
        let mut series = OpenSeries {
            id: self.last_id,
            name: None,
            last: event.at,
            first: event,
            count: 1,
            last_seen: now,
            written: 0,
            last_written: now,
        };
        let write = series.write(now);
        make_room(&mut self.series, SERIES, |series| series.last_seen);
        self.series.insert(key, series);
        Some(write)
    }

    /// The event of this series was written under this name.
    pub(super) fn set_name(&mut self, id: u64, name: String) {
        if let Some(series) = self.series.values_mut().find(|series| series.id == id) {
            series.name = Some(name);
        }
    }

    /// When [`Correlator::write_due`] has something to do.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.series.values().map(OpenSeries::due).min()
    }

    /// Ends silent series, and returns the counts that are due to be written.
    pub(super) fn write_due(&mut self, now: Duration) -> Vec<EventWrite<u64>> {
        let mut writes = Vec::new();
        self.series.retain(|_, series| {
            let is_over = series.is_over(now);
            let is_behind = series.written < series.count;
            if is_behind && (is_over || now >= series.last_written + REFRESH) {
                writes.push(series.write(now));
            }
            !is_over
        });
        self.budgets.retain(|_, budget| budget.refill(now) < BURST);
        writes
    }

    /// All counts that have not been written.
    pub(super) fn close(&mut self) -> Vec<EventWrite<u64>> {
        let all = std::mem::take(&mut self.series).into_values();
        all.filter(|series| series.written < series.count)
            .map(|mut series| series.write(Duration::ZERO))
            .collect()
    }
}

impl OpenSeries {
    fn is_over(&self, now: Duration) -> bool {
        now >= self.last_seen + SILENCE
    }

    fn due(&self) -> Duration {
        let silent = self.last_seen + SILENCE;
        if self.written < self.count { silent.min(self.last_written + REFRESH) } else { silent }
    }

    fn write(&mut self, now: Duration) -> EventWrite<u64> {
        self.written = self.count;
        self.last_written = now;
        EventWrite {
            id: self.id,
            name: self.name.clone(),
            event: self.first.clone(),
            count: self.count,
            first: self.first.at,
            last: self.last,
        }
    }
}

impl Budget {
    /// Adds the refills since the last call, and returns what is left.
    fn refill(&mut self, now: Duration) -> u32 {
        let periods = (now.saturating_sub(self.filled).as_nanos() / REFILL.as_nanos()).min(u128::from(BURST));
        let periods = u32::try_from(periods).unwrap_or(BURST);
        self.filled += REFILL * periods;
        self.left = (self.left + periods).min(BURST);
        self.left
    }
}

impl ObjectId {
    pub(super) fn of(object: &ObjectReference) -> ObjectId {
        let ObjectReference { api_version, kind, namespace, name, uid, field_path, .. } = object.clone();
        ObjectId([api_version, kind, namespace, name, uid, field_path])
    }
}

/// Takes one write out of the object's budget, if there is one left.
pub(super) fn afford(budgets: &mut BTreeMap<ObjectId, Budget>, object: ObjectId, now: Duration) -> bool {
    if !budgets.contains_key(&object) {
        make_room(budgets, BUDGETS, |budget| budget.filled);
    }
    let budget = budgets.entry(object).or_insert(Budget { left: BURST, filled: now });
    let is_affordable = budget.refill(now) > 0;
    budget.left = budget.left.saturating_sub(1);
    is_affordable
}

/// Drops the oldest entry if the map is full.
pub(super) fn make_room<K: Ord + Clone, V>(
    map: &mut BTreeMap<K, V>,
    limit: usize,
    age: impl Fn(&V) -> Duration,
) {
    if map.len() < limit {
        return;
    }
    let oldest = map.iter().min_by_key(|(_, value)| age(value)).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests;
