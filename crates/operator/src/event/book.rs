//! News in, what to write out: the first time as an event, the next times as a count on it.
//!
//! An event that comes again within [`SILENCE`] is the same one. Its second time is written at once,
//! later ones are counted here and written each [`REFRESH`], and once more when it falls silent.

use super::{Source, Tone, cut, micro};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::ObjectReference,
    events::v1::{Event, EventSeries},
};
use kube::core::ObjectMeta;
use std::{collections::BTreeMap, time::Duration};

/// Kubernetes: a series ends after six quiet minutes.
pub(super) const SILENCE: Duration = Duration::from_secs(6 * 60);
/// Kubernetes: a running series is written each half hour.
pub(super) const REFRESH: Duration = Duration::from_secs(30 * 60);
/// Kubernetes: an object may have 25 writes at once, and one each five minutes from then on.
pub(super) const BURST: u32 = 25;
pub(super) const REFILL: Duration = Duration::from_secs(5 * 60);
/// Kubernetes keeps 4096 of each; the quietest gives way.
pub(super) const SERIES: usize = 4096;
pub(super) const BUDGETS: usize = 4096;

/// Kubernetes: longer ones are refused.
const NOTE_BYTES: usize = 1024;
const WORD_BYTES: usize = 128;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct News {
    pub(super) regarding: ObjectReference,
    pub(super) tone: Tone,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
    pub(super) at: Timestamp,
}

/// What to tell the server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    /// Which series this is of.
    pub(super) id: u64,
    /// The event to count on; a new one if there is none.
    pub(super) name: Option<String>,
    pub(super) news: News,
    count: i32,
    last: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    series: BTreeMap<Identity, Series>,
    budgets: BTreeMap<Subject, Budget>,
    last_id: u64,
}

/// An object, in whichever version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject([Option<String>; 6]);

/// News that are the same but for when and with which words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity(Subject, Tone, String, String);

#[derive(Debug)]
struct Series {
    id: u64,
    name: Option<String>,
    first: News,
    count: i32,
    last: Timestamp,
    last_seen: Duration,
    written: i32,
    last_written: Duration,
}

#[derive(Debug)]
struct Budget {
    left: u32,
    /// Up to when refills are counted in.
    filled: Duration,
}

impl Book {
    /// Takes news in; `now` is the time since the book was opened.
    pub(super) fn enter(&mut self, now: Duration, news: News) -> Option<Write> {
        let subject = Subject::of(&news.regarding);
        let identity = Identity(subject.clone(), news.tone, news.reason.clone(), news.action.clone());
        if let Some(series) = self.series.get_mut(&identity).filter(|series| !series.is_over(now)) {
            series.count = series.count.saturating_add(1);
            series.last = news.at;
            series.last_seen = now;
            let is_second = series.written == 1;
            return (is_second && afford(&mut self.budgets, subject, now)).then(|| series.write(now));
        }
        if !afford(&mut self.budgets, subject, now) {
            return None;
        }
        self.last_id += 1;
        let mut series = Series {
            id: self.last_id,
            name: None,
            last: news.at,
            first: news,
            count: 1,
            last_seen: now,
            written: 0,
            last_written: now,
        };
        let write = series.write(now);
        make_room(&mut self.series, SERIES, |series| series.last_seen);
        self.series.insert(identity, series);
        Some(write)
    }

    /// The server took a write of this series, under this name.
    pub(super) fn name(&mut self, id: u64, name: String) {
        if let Some(series) = self.series.values_mut().find(|series| series.id == id) {
            series.name = Some(name);
        }
    }

    /// When [`Book::settle`] has something to do.
    pub(super) fn due(&self) -> Option<Duration> {
        self.series.values().map(Series::due).min()
    }

    /// Ends the series that fell silent, and writes the counts that were not written for long.
    pub(super) fn settle(&mut self, now: Duration) -> Vec<Write> {
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

    /// Writes all counts that were not written.
    pub(super) fn close(&mut self) -> Vec<Write> {
        let all = std::mem::take(&mut self.series).into_values();
        all.filter(|series| series.written < series.count)
            .map(|mut series| series.write(Duration::ZERO))
            .collect()
    }
}

impl Series {
    fn is_over(&self, now: Duration) -> bool {
        now >= self.last_seen + SILENCE
    }

    fn due(&self) -> Duration {
        let silent = self.last_seen + SILENCE;
        if self.written < self.count { silent.min(self.last_written + REFRESH) } else { silent }
    }

    fn write(&mut self, now: Duration) -> Write {
        self.written = self.count;
        self.last_written = now;
        Write {
            id: self.id,
            name: self.name.clone(),
            news: self.first.clone(),
            count: self.count,
            last: self.last,
        }
    }
}

impl Budget {
    /// What is left once the time since the last look has been paid in.
    fn refill(&mut self, now: Duration) -> u32 {
        let periods = (now.saturating_sub(self.filled).as_nanos() / REFILL.as_nanos()).min(u128::from(BURST));
        let periods = u32::try_from(periods).unwrap_or(BURST);
        self.filled += REFILL * periods;
        self.left = (self.left + periods).min(BURST);
        self.left
    }
}

impl Subject {
    fn of(object: &ObjectReference) -> Subject {
        let ObjectReference { api_version, kind, namespace, name, uid, field_path, .. } = object.clone();
        Subject([api_version, kind, namespace, name, uid, field_path])
    }
}

impl Write {
    /// A single event has no series.
    pub(super) fn series(&self) -> Option<EventSeries> {
        (self.count > 1).then(|| EventSeries { count: self.count, last_observed_time: micro(self.last) })
    }
}

impl News {
    pub(super) fn event(&self, name: String, source: &Source, series: Option<EventSeries>) -> Event {
        // Kubernetes: what regards an object without a namespace is told in `default`.
        let namespace = self.regarding.namespace.clone().unwrap_or_else(|| "default".into());
        Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
            event_time: Some(micro(self.at)),
            series,
            reporting_controller: Some(source.controller.clone()),
            reporting_instance: Some(cut(&source.instance, WORD_BYTES).into()),
            action: Some(cut(&self.action, WORD_BYTES).into()),
            reason: Some(cut(&self.reason, WORD_BYTES).into()),
            regarding: Some(self.regarding.clone()),
            note: Some(cut(&self.note, NOTE_BYTES).into()),
            type_: Some(self.tone.as_str().into()),
            ..Event::default()
        }
    }
}

/// Takes one write out of the object's budget, if there is one left.
fn afford(budgets: &mut BTreeMap<Subject, Budget>, subject: Subject, now: Duration) -> bool {
    if !budgets.contains_key(&subject) {
        make_room(budgets, BUDGETS, |budget| budget.filled);
    }
    let budget = budgets.entry(subject).or_insert(Budget { left: BURST, filled: now });
    let is_affordable = budget.refill(now) > 0;
    budget.left = budget.left.saturating_sub(1);
    is_affordable
}

/// Drops the entry that is the oldest by `age`, if the map is full.
fn make_room<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, limit: usize, age: impl Fn(&V) -> Duration) {
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
