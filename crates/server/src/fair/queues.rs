//! The queues of one priority level: each arrival and end returns the requests that now get seats. No
//! clock, no waiting.
//!
//! A flow waits in one of a few queues. Fair queuing: the next request is that which would end first if all
//! queues were served at once and evenly.

use super::{deal::deal, rejection::Rejection, width::Width};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    time::Duration,
};

/// Seats times nanoseconds.
type Work = i128;

/// The duration that a request is charged before it ends.
// Kubernetes: the same estimate.
const GUESS: Duration = Duration::from_millis(3);

/// What happens to requests that find no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// They get one anyway.
    Exempt,
    Reject,
    Queue {
        queues: u32,
        hand: u32,
        length: usize,
    },
}

/// The seats of one priority level and the requests that wait for them. `W` notifies a waiting request.
#[derive(Debug)]
pub(super) struct Queues<W> {
    response: Overflow,
    limit: u32,
    /// Only queues with waiting or running requests.
    queues: BTreeMap<u32, Queue<W>>,
    /// The number of queues with waiting or running requests.
    active: u64,
    /// Virtual time: the work given to a queue that was always active.
    progress: Work,
    seen: Duration,
    last_served: u32,
    arrivals: u64,
    executing: u64,
    seats_in_use: u64,
    waiting: usize,
    seats_waiting: u64,
    /// Seats held for a while after their request ended, for its watch events: until when, how many, of
    /// which queue.
    lingering: BinaryHeap<Reverse<(Duration, u32, Option<u32>)>>,
    pub(super) tally: Tally,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) dispatched: u64,
    pub(super) refused: u64,
    pub(super) timed_out: u64,
    pub(super) cancelled: u64,
}

#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<Waiting<W>>,
    work_waiting: Work,
    /// The virtual time at which its next request starts.
    next: Work,
    executing: u64,
    seats_in_use: u64,
}

#[derive(Debug)]
struct Waiting<W> {
    ticket: Ticket,
    width: Width,
    arrived: Work,
    waiter: W,
}

/// Seats of a request, to be returned with [`Queues::finish`].
#[derive(Debug)]
#[must_use = "seats that are not returned are lost"]
pub(super) struct Seats {
    queue: Option<u32>,
    width: Width,
    since: Duration,
}

/// The place of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    queue: u32,
    number: u64,
}

/// A waiting request that now has seats.
#[derive(Debug)]
pub(super) struct Dispatched<W> {
    pub(super) waiter: W,
    pub(super) seats: Seats,
}

/// The outcome of an arrival. A request that waits may be among those dispatched at once.
#[derive(Debug)]
pub(super) enum Arrival {
    Seated(Seats),
    Waits(Ticket),
    Refused(Rejection),
}

impl<W> Queues<W> {
    pub(super) fn new(response: Overflow, limit: u32, now: Duration) -> Queues<W> {
        Queues {
            response,
            limit,
            queues: BTreeMap::new(),
            active: 0,
            progress: 0,
            seen: now,
            last_served: 0,
            arrivals: 0,
            executing: 0,
            seats_in_use: 0,
            waiting: 0,
            seats_waiting: 0,
            lingering: BinaryHeap::new(),
            tally: Tally::default(),
        }
    }

    /// Takes new settings. Waiting requests stay in their queues, even if there are now fewer.
    pub(super) fn configure(&mut self, now: Duration, response: Overflow, limit: u32) {
        self.pass(now);
        (self.response, self.limit) = (response, limit);
    }

    /// A request of a flow arrives. `waiter` is called only if it has to wait.
    pub(super) fn arrive(
        &mut self,
        now: Duration,
        flow: u64,
        width: Width,
        waiter: impl FnOnce() -> W,
    ) -> Arrival {
        self.pass(now);
        let Overflow::Queue { queues, hand, length } = self.response else {
            if self.response == Overflow::Reject && !self.has_room(width) {
                self.tally.refused += 1;
                return Arrival::Refused(Rejection::NoSeat);
            }
            return Arrival::Seated(self.seat(now, None, width));
        };
        let at = self.choose(flow, queues, hand);
        let progress = self.progress;
        let queue = self.queues.entry(at).or_insert_with(Queue::new);
        // Kubernetes lets a queue grow beyond its limit while any seat is free, even one too few for its
        // requests.
        if queue.waiting.len() >= length.max(1) {
            self.tally.refused += 1;
            return Arrival::Refused(Rejection::QueueFull);
        }
        if !queue.is_active() {
            queue.next = progress;
            self.active += 1;
        }
        let narrowed = width.within(self.limit);
        if self.waiting == 0 && self.has_room(narrowed) {
            self.charge(at, width);
            return Arrival::Seated(self.seat(now, Some(at), narrowed));
        }
        let ticket = Ticket { queue: at, number: self.arrivals };
        let queue = self.queues.get_mut(&at).expect("inserted above");
        queue.waiting.push_back(Waiting { ticket, width, arrived: progress, waiter: waiter() });
        queue.work_waiting += width.work();
        queue.bound();
        self.waiting += 1;
        self.seats_waiting += u64::from(width.most());
        Arrival::Waits(ticket)
    }

    /// Gives free seats to waiting requests in fair order.
    pub(super) fn dispatch(&mut self, now: Duration) -> Vec<Dispatched<W>> {
        self.pass(now);
        let mut dispatched = Vec::new();
        while let Some(at) = self.next_queue() {
            let queue = self.queues.get_mut(&at).expect("found above");
            let head = queue.waiting.front().expect("the chosen queue is not empty").width.within(self.limit);
            if !self.has_room(head) {
                break;
            }
            let queue = self.queues.get_mut(&at).expect("found above");
            let Some(Waiting { width, waiter, .. }) = queue.waiting.pop_front() else { break };
            queue.work_waiting -= width.work();
            self.waiting -= 1;
            self.seats_waiting -= u64::from(width.most());
            self.last_served = at;
            let seats = self.seat(now, Some(at), head);
            self.charge(at, width);
            dispatched.push(Dispatched { waiter, seats });
        }
        dispatched
    }

    /// A request has ended.
    pub(super) fn finish(&mut self, now: Duration, seats: Seats) {
        self.pass(now);
        let Seats { queue: at, width, since } = seats;
        self.executing -= 1;
        if let Some(at) = at
            && let Some(queue) = self.queues.get_mut(&at)
        {
            queue.executing -= 1;
            // Replace the estimate by the actual duration.
            let lasted = now.saturating_sub(since).as_nanos() as Work;
            queue.next -= Work::from(width.seats) * (GUESS.as_nanos() as Work - lasted);
            queue.bound();
            self.active -= u64::from(!queue.is_active());
        }
        if width.lingering.is_zero() {
            self.release(width.most(), at);
        } else {
            self.lingering.push(Reverse((now + width.lingering, width.most(), at)));
        }
    }

    /// A request gives up waiting; `false` if it got seats meanwhile.
    pub(super) fn leave(&mut self, now: Duration, ticket: Ticket) -> bool {
        self.pass(now);
        let Some(queue) = self.queues.get_mut(&ticket.queue) else { return false };
        let Some(index) = queue.waiting.iter().position(|it| it.ticket == ticket) else { return false };
        let Some(left) = queue.waiting.remove(index) else { return false };
        queue.work_waiting -= left.width.work();
        queue.bound();
        self.active -= u64::from(!queue.is_active());
        self.waiting -= 1;
        self.seats_waiting -= u64::from(left.width.most());
        self.forget(ticket.queue);
        true
    }

    /// When the next lingering seats are released.
    pub(super) fn next_release(&self) -> Option<Duration> {
        self.lingering.peek().map(|Reverse((until, ..))| *until)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0 && self.lingering.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn executing(&self) -> u64 {
        self.executing
    }

    /// Seats in use or waited for.
    pub(super) fn demand(&self) -> u64 {
        self.seats_in_use + self.seats_waiting
    }

    /// The number of queues with waiting requests.
    pub(super) fn filled(&self) -> usize {
        self.queues.values().filter(|queue| !queue.waiting.is_empty()).count()
    }

    /// Of a flow's queues, the one with the least work.
    fn choose(&mut self, flow: u64, queues: u32, hand: u32) -> u32 {
        let mut cards = [0; super::deal::MAX_HAND];
        let mut count = 0;
        for card in deal(flow, queues.max(1), hand.max(1) as usize) {
            cards[count] = card;
            count += 1;
        }
        // Start at changing positions, or flows with overlapping hands would meet in the same queue.
        let first = (self.arrivals % count as u64) as usize;
        self.arrivals += 1;
        let work = |at: &u32| self.queues.get(at).map_or(0, |queue| queue.work_waiting);
        let (late, early) = cards[..count].split_at(first);
        early.iter().chain(late).copied().min_by_key(work).unwrap_or_default()
    }

    /// The queue whose oldest request would end first; among equals the next after the one served last.
    fn next_queue(&self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let after = self.queues.range(self.last_served.saturating_add(1)..);
        let others = after.chain(self.queues.range(..=self.last_served));
        let ends =
            others.filter_map(|(at, queue)| Some((queue.next + queue.waiting.front()?.width.work(), *at)));
        ends.min_by_key(|(end, _)| *end).map(|(_, at)| at)
    }

    fn has_room(&self, width: Width) -> bool {
        let seats = u64::from(width.most());
        match self.response {
            Overflow::Exempt => true,
            // Kubernetes: a level without seats stops all queued requests.
            Overflow::Queue { .. } if self.seats_in_use >= u64::from(self.limit) => false,
            // A request wider than the level gets all of it, alone.
            _ if seats > u64::from(self.limit) => self.executing == 0,
            _ => self.seats_in_use + seats <= u64::from(self.limit),
        }
    }

    fn seat(&mut self, now: Duration, at: Option<u32>, width: Width) -> Seats {
        self.executing += 1;
        self.seats_in_use += u64::from(width.most());
        self.tally.dispatched += 1;
        if let Some(queue) = at.and_then(|at| self.queues.get_mut(&at)) {
            queue.executing += 1;
            queue.seats_in_use += u64::from(width.most());
        }
        Seats { queue: at, width, since: now }
    }

    fn charge(&mut self, at: u32, width: Width) {
        if let Some(queue) = self.queues.get_mut(&at) {
            queue.next += width.work();
            queue.bound();
        }
    }

    /// Advances virtual time, and releases lingering seats.
    fn pass(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.seen).as_nanos() as Work;
        self.seen = self.seen.max(now);
        if self.active > 0 {
            let seats = self.demand().min(u64::from(self.limit));
            self.progress += elapsed * Work::from(seats) / Work::from(self.active);
        }
        while self.next_release().is_some_and(|until| until <= now) {
            let Some(Reverse((_, seats, at))) = self.lingering.pop() else { break };
            self.release(seats, at);
        }
    }

    fn release(&mut self, seats: u32, at: Option<u32>) {
        self.seats_in_use -= u64::from(seats);
        let Some(at) = at else { return };
        if let Some(queue) = self.queues.get_mut(&at) {
            queue.seats_in_use -= u64::from(seats);
        }
        self.forget(at);
    }

    fn forget(&mut self, at: u32) {
        if self.queues.get(&at).is_some_and(|queue| !queue.is_active() && queue.seats_in_use == 0) {
            self.queues.remove(&at);
        }
    }
}

impl<W> Queue<W> {
    fn new() -> Queue<W> {
        Queue { waiting: VecDeque::new(), work_waiting: 0, next: 0, executing: 0, seats_in_use: 0 }
    }

    fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    /// A queue that was idle does not save up its share: no request starts before it arrived.
    fn bound(&mut self) {
        if let Some(oldest) = self.waiting.front() {
            self.next = self.next.max(oldest.arrived);
        }
    }
}

impl Width {
    fn work(self) -> Work {
        let work = |seats: u32, time: Duration| Work::from(seats) * time.as_nanos() as Work;
        work(self.seats, GUESS) + work(self.after, self.lingering)
    }

    /// Limits the lingering seats to the level's; they linger proportionally longer.
    fn within(self, limit: u32) -> Width {
        if self.after <= limit || limit == 0 {
            return self;
        }
        Width { after: limit, lingering: self.lingering * self.after / limit, ..self }
    }
}
