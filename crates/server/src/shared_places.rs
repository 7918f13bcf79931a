//! A number of places for connections, which users share: none has more than a quarter for long, and when all are taken,
//! the user who has the most makes room for others.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use world::{Moment, World, watch};

/// The part of all places that one user may have for long is one of so many.
const PARTS: usize = 4;

pub(crate) struct SharedPlaces(Arc<Shared>);

struct Shared {
    world: World,
    limit: usize,
    taken: Mutex<TakenPlaces>,
}

#[derive(Default)]
struct TakenPlaces {
    next: u64,
    holders: BTreeMap<u64, Arc<Holder>>,
}

/// A place; free again when dropped.
pub(crate) struct SharedPlace {
    shared: Arc<Shared>,
    number: u64,
    holder: Arc<Holder>,
}

struct Holder {
    state: Mutex<HolderState>,
    /// True when its connection must end.
    end: watch::Sender<bool>,
}

#[derive(Clone)]
struct HolderState {
    used_for: PlaceUse,
    since: Moment,
    /// Empty until it is known.
    user: Arc<str>,
}

/// The places that a user has with requests, and the oldest of them.
#[derive(Default)]
struct UsedPlaces {
    count: usize,
    lasting: Option<(Moment, u64)>,
    busy: Option<(Moment, u64)>,
}

/// What a place is used for. The first two make room for others, the first before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PlaceUse {
    /// No request has come.
    New,
    /// Between two requests.
    Idle,
    /// A request that ends by itself.
    Busy,
    /// A watch and the like, which lasts as long as its user wants.
    Lasting,
}

impl SharedPlaces {
    pub(crate) fn new(world: &World, limit: usize) -> SharedPlaces {
        SharedPlaces(Arc::new(Shared { world: world.clone(), limit, taken: Mutex::default() }))
    }

    /// A place whose user is not known yet. `None` where all are busy.
    pub(crate) fn take(&self) -> Option<SharedPlace> {
        let mut taken = lock(&self.0.taken);
        let has_room = taken.holders.len() < self.0.limit || taken.make_room(0, self.0.share());
        has_room.then(|| self.place(&mut taken, PlaceUse::New, ""))
    }

    /// A place that this user has for long. `None` where they have their share, or all are taken and no other user has more.
    pub(crate) fn take_for(&self, user: &str) -> Option<SharedPlace> {
        let mut taken = lock(&self.0.taken);
        let own = taken.lasting_of(user).count();
        let is_full = taken.holders.len() >= self.0.limit;
        if own >= self.0.share() || (is_full && !taken.make_room(own, self.0.share())) {
            return None;
        }
        Some(self.place(&mut taken, PlaceUse::Lasting, user))
    }

    /// Ends a connection for another; `false` where all are busy.
    pub(crate) fn make_room(&self) -> bool {
        lock(&self.0.taken).make_room(0, self.0.share())
    }

    fn place(&self, taken: &mut TakenPlaces, used_for: PlaceUse, user: &str) -> SharedPlace {
        let state = HolderState { used_for, since: self.0.world.now(), user: user.into() };
        let holder = Arc::new(Holder { state: Mutex::new(state), end: watch::Sender::new(false) });
        taken.next += 1;
        let number = taken.next;
        taken.holders.insert(number, Arc::clone(&holder));
        SharedPlace { shared: Arc::clone(&self.0), number, holder }
    }
}

impl Shared {
    fn share(&self) -> usize {
        self.limit.div_ceil(PARTS)
    }
}

impl TakenPlaces {
    /// Since when this user has places for long, with their numbers.
    fn lasting_of(&self, user: &str) -> impl Iterator<Item = (Moment, u64)> {
        self.holders.iter().filter_map(move |(number, holder)| {
            let state = lock(&holder.state);
            let is_theirs = state.used_for == PlaceUse::Lasting && *state.user == *user;
            is_theirs.then_some((state.since, *number))
        })
    }

    /// Ends the connection that has been without a request for longest, or else the oldest of the user who has the most, if
    /// those are more than `own`. Requests that end by themselves are cut off only if they are more than a share.
    fn make_room(&mut self, own: usize, share: usize) -> bool {
        let mut idle = None;
        let mut users: BTreeMap<Arc<str>, UsedPlaces> = BTreeMap::new();
        for (number, holder) in &self.holders {
            let HolderState { used_for, since, user } = lock(&holder.state).clone();
            match used_for {
                PlaceUse::New | PlaceUse::Idle => {
                    let candidate = (used_for, since, *number);
                    idle = Some(idle.map_or(candidate, |least| candidate.min(least)));
                }
                PlaceUse::Busy | PlaceUse::Lasting => {
                    let used = users.entry(user).or_default();
                    used.count += 1;
                    let oldest = if used_for == PlaceUse::Busy { &mut used.busy } else { &mut used.lasting };
                    *oldest = Some(oldest.map_or((since, *number), |oldest| oldest.min((since, *number))));
                }
            }
        }
        let users = users.into_values().filter(|used| used.count > own);
        let oldest = users.filter_map(|used| {
            let busy = used.busy.filter(|_| used.count > share);
            Some((used.count, used.lasting.or(busy)?.1))
        });
        let most = oldest.max_by_key(|(count, _)| *count);
        let last = idle.map(|(_, _, number)| number).or(most.map(|(_, number)| number));
        last.inspect(|number| self.end(*number)).is_some()
    }

    fn end(&mut self, number: u64) {
        if let Some(holder) = self.holders.remove(&number) {
            holder.end.set(true);
        }
    }
}

impl SharedPlace {
    /// What it is used for from now on.
    pub(crate) fn set(&self, used_for: PlaceUse) {
        let mut state = lock(&self.holder.state);
        if state.used_for != used_for {
            (state.used_for, state.since) = (used_for, self.shared.world.now());
        }
    }

    /// What it is used for, and since when.
    pub(crate) fn used_for(&self) -> (PlaceUse, Moment) {
        let state = lock(&self.holder.state);
        (state.used_for, state.since)
    }

    /// Whose it is from now on.
    pub(crate) fn belongs_to(&self, user: &str) {
        let mut state = lock(&self.holder.state);
        if *state.user != *user {
            state.user = user.into();
        }
    }

    /// Its user has it for long. If that is more than their share, the oldest of theirs ends.
    pub(crate) fn lasts(&self) {
        let user = {
            let mut state = lock(&self.holder.state);
            if state.used_for == PlaceUse::Lasting {
                return;
            }
            (state.used_for, state.since) = (PlaceUse::Lasting, self.shared.world.now());
            Arc::clone(&state.user)
        };
        let mut taken = lock(&self.shared.taken);
        if taken.lasting_of(&user).count() > self.shared.share()
            && let Some((_, oldest)) = taken.lasting_of(&user).min()
        {
            taken.end(oldest);
        }
    }

    /// When the place is needed for another.
    pub(crate) fn end(&self) -> PlaceEnd {
        PlaceEnd(Arc::clone(&self.holder))
    }
}

/// Tells when a place is needed for another.
#[derive(Clone)]
pub(crate) struct PlaceEnd(Arc<Holder>);

impl PlaceEnd {
    /// Resolves when its connection must end.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as this.
        let _ = self.0.end.subscribe().wait_for(|end| *end).await;
    }
}

impl Drop for SharedPlace {
    fn drop(&mut self) {
        lock(&self.shared.taken).holders.remove(&self.number);
    }
}

impl fmt::Debug for SharedPlaces {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = lock(&self.0.taken).holders.len();
        out.debug_struct("SharedPlaces").field("limit", &self.0.limit).field("taken", &taken).finish()
    }
}

impl fmt::Debug for SharedPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SharedPlace({})", self.number)
    }
}

impl fmt::Debug for PlaceEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PlaceEnd")
    }
}

/// No code panics while it holds the lock, so poisoning means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn must_end(place: &SharedPlace) -> bool {
        place.holder.end.value()
    }

    #[test]
    fn a_user_has_no_more_than_a_quarter_and_the_one_with_the_most_makes_room() {
        world::simulate(1, |world| async move {
            let shares = SharedPlaces::new(&world, 8);
            let own: Vec<SharedPlace> = std::iter::from_fn(|| shares.take_for("alice")).collect();
            assert_eq!(own.len(), 2, "a quarter of the places");
            let others: Vec<SharedPlace> = ["bob", "bob", "carol", "dave", "erin", "frank"]
                .map(|user| shares.take_for(user).unwrap())
                .into();
            assert!(shares.take_for("bob").is_none(), "a share is a share");
            assert!(shares.take_for("carol").is_some_and(|place| !must_end(&place)));
            let ended: Vec<bool> = own.iter().chain(&others).map(must_end).collect();
            assert_eq!(ended.iter().filter(|ended| **ended).count(), 1);
            assert!(ended[0] || ended[2], "the oldest of a user with two: {ended:?}");
            drop((own, others));
            assert_eq!(lock(&shares.0.taken).holders.len(), 0);
        })
        .unwrap();
    }

    #[test]
    fn many_users_with_one_place_each_do_not_keep_another_out() {
        world::simulate(1, |world| async move {
            let shares = SharedPlaces::new(&world, 4);
            let places: Vec<SharedPlace> =
                (0..4).map(|number| shares.take_for(&format!("user-{number}")).unwrap()).collect();
            assert!(shares.take_for("user-0").is_none(), "no other user has more");
            assert!(shares.take_for("root").is_some());
            assert_eq!(places.iter().filter(|place| must_end(place)).count(), 1);
        })
        .unwrap();
    }

    #[test]
    fn connections_without_a_request_make_room_first_and_those_with_a_short_one_last() {
        world::simulate(1, |world| async move {
            let shares = SharedPlaces::new(&world, 8);
            let places: Vec<SharedPlace> = (0..8).map(|_| shares.take().unwrap()).collect();
            for (place, used_for) in
                places.iter().zip([PlaceUse::Busy, PlaceUse::Idle, PlaceUse::New, PlaceUse::Busy])
            {
                world.sleep(Duration::from_secs(1)).await;
                place.set(used_for);
            }
            places[4..].iter().for_each(|place| place.belongs_to("alice"));
            places[4..].iter().for_each(SharedPlace::lasts);
            let ended = || (0..8).filter(|at| must_end(&places[*at])).collect::<Vec<_>>();
            assert_eq!(ended(), [4, 5], "the oldest ones beyond her share");
            for all in [&[2, 4, 5][..], &[1, 2, 4, 5], &[1, 2, 4, 5, 6], &[1, 2, 4, 5, 6, 7]] {
                assert!(shares.make_room());
                assert_eq!(ended(), all);
            }
            assert!(!shares.make_room(), "what is left is busy");
            let more: Vec<SharedPlace> = (0..6).map(|_| shares.take().unwrap()).collect();
            for place in &more[..3] {
                place.belongs_to("bob");
                place.set(PlaceUse::Busy);
                world.sleep(Duration::from_secs(1)).await;
            }
            let others = [&places[0], &places[3], &more[3], &more[4], &more[5]];
            for (place, user) in others.into_iter().zip(["carol", "dave", "erin", "frank", "grace"]) {
                place.belongs_to(user);
                place.set(PlaceUse::Busy);
            }
            more[3].lasts();
            assert!(shares.take().is_some(), "more than a share of short ones");
            assert!(must_end(&more[0]) && !others.into_iter().any(must_end), "bob has made room");
        })
        .unwrap();
    }
}
