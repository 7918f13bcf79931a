//! Levels and queues with simulated requests: order, shares, and that no flow starves.

use super::{
    deal::flow,
    levels::Levels,
    queues::{Arrival, Overflow, Queues, Seats, Ticket},
    settings::{CATCH_ALL, EXEMPT, PriorityLevel, Schema, in_order, mandatory},
    width::Width,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

const MILLI: Duration = Duration::from_millis(1);
const QUEUES: Overflow = Overflow::Queue { queues: 64, hand: 6, length: 50 };

/// One priority level on a machine that takes a fixed time per request.
struct Machine {
    queues: Queues<(&'static str, Duration)>,
    now: Duration,
    service: Duration,
    running: BTreeMap<(Duration, u64), Seats>,
    count: u64,
    /// Per flow: the longest wait, and the numbers of served and rejected requests.
    served: BTreeMap<&'static str, (Duration, u64, u64)>,
    most_running: usize,
    most_waiting: usize,
}

impl Machine {
    fn new(response: Overflow, limit: u32, service: Duration) -> Machine {
        Machine {
            queues: Queues::new(response, limit, Duration::ZERO),
            now: Duration::ZERO,
            service,
            running: BTreeMap::new(),
            count: 0,
            served: BTreeMap::new(),
            most_running: 0,
            most_waiting: 0,
        }
    }

    fn arrive(&mut self, name: &'static str, width: Width) {
        match self.queues.arrive(self.now, flow("schema", name), width, || (name, self.now)) {
            Arrival::Seated(seats) => self.run(name, self.now, seats),
            Arrival::Refused(_) => self.served.entry(name).or_default().2 += 1,
            Arrival::Waits(_) => {}
        }
        self.dispatch();
    }

    fn dispatch(&mut self) {
        for dispatched in self.queues.dispatch(self.now) {
            let (name, since) = dispatched.waiter;
            self.run(name, since, dispatched.seats);
        }
        self.most_waiting = self.most_waiting.max(self.queues.waiting());
    }

    fn run(&mut self, name: &'static str, since: Duration, seats: Seats) {
        let served = self.served.entry(name).or_default();
        served.0 = served.0.max(self.now - since);
        served.1 += 1;
        self.count += 1;
        self.running.insert((self.now + self.service, self.count), seats);
        self.most_running = self.most_running.max(self.running.len());
    }

    /// Runs until `then`.
    fn until(&mut self, then: Duration) {
        loop {
            let end = self.running.first_key_value().map(|((end, _), _)| *end);
            let release = self.queues.next_release();
            let Some(next) = end.into_iter().chain(release).min().filter(|next| *next <= then) else { break };
            self.now = next;
            while self.running.first_key_value().is_some_and(|((end, _), _)| *end <= next) {
                let Some((_, seats)) = self.running.pop_first() else { break };
                self.queues.finish(self.now, seats);
            }
            self.dispatch();
        }
        self.now = then;
    }
}

#[test]
fn a_noisy_flow_delays_only_itself() {
    // Ten seats of 10 ms each serve 1,000 requests a second. One client sends ten times that for a second,
    // another sends ten requests.
    let mut machine = Machine::new(QUEUES, 10, 10 * MILLI);
    for number in 0..10_000u32 {
        machine.until(MILLI * number / 10);
        machine.arrive("noisy", Width::ONE);
        if number % 1000 == 500 {
            machine.arrive("quiet", Width::ONE);
        }
    }
    machine.until(Duration::from_secs(60));
    let (quiet, noisy) = (machine.served["quiet"], machine.served["noisy"]);
    assert_eq!((quiet.1, quiet.2), (10, 0), "all of the quiet ones are served");
    assert!(quiet.0 <= 20 * MILLI, "a quiet one waited for {:?}", quiet.0);
    assert!(noisy.0 > 100 * MILLI && noisy.2 > 5000, "{noisy:?}");
    assert_eq!(noisy.1 + noisy.2, 10_000);
    // Limited to a hand of six queues of fifty, and the seats.
    assert!(machine.most_waiting <= 6 * 50 + 10, "{}", machine.most_waiting);
    assert_eq!(machine.most_running, 10);
    assert!(machine.queues.is_idle());
    assert_eq!(machine.queues.demand(), 0);
}

#[test]
fn equal_flows_get_equal_shares() {
    const FLOWS: [&str; 4] = ["ann", "bob", "cleo", "dan"];
    let one_each = Overflow::Queue { queues: 64, hand: 1, length: 50 };
    let mut machine = Machine::new(one_each, 4, 10 * MILLI);
    // The first sends four times what can be served, the others as much as can be.
    for tick in 0..2000u32 {
        machine.until(MILLI * tick);
        (0..4).for_each(|_| machine.arrive(FLOWS[0], Width::ONE));
        if tick % 10 < 2 {
            FLOWS[1..].iter().for_each(|name| machine.arrive(name, Width::ONE));
        }
    }
    let served: Vec<u64> = FLOWS.iter().map(|name| machine.served[name].1).collect();
    let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
    assert!(most - least <= most / 10, "{served:?}");
}

#[test]
fn wide_requests_wait_for_seats_and_do_not_starve() {
    let wide = Width { seats: 8, ..Width::ONE };
    let mut machine = Machine::new(QUEUES, 10, 10 * MILLI);
    for tick in 0..1000u32 {
        machine.until(MILLI * tick);
        machine.arrive("narrow", Width::ONE);
        machine.arrive("narrow", Width::ONE);
        if tick == 500 {
            machine.arrive("wide", wide);
        }
    }
    machine.until(Duration::from_secs(60));
    let (waited, served, _) = machine.served["wide"];
    assert!(served == 1 && waited < 200 * MILLI, "{waited:?}");
    // Wider than the level: served alone.
    machine.arrive("huge", Width { seats: 40, ..Width::ONE });
    machine.arrive("narrow", Width::ONE);
    assert_eq!(machine.running.len(), 1);
    machine.until(machine.now + 20 * MILLI);
    assert!(machine.queues.is_idle());
}

#[test]
fn seats_linger_while_watch_events_are_sent() {
    let write = Width { seats: 1, after: 5, lingering: 50 * MILLI };
    let mut machine = Machine::new(QUEUES, 5, 10 * MILLI);
    machine.arrive("writer", write);
    machine.until(10 * MILLI);
    assert!(machine.running.is_empty() && !machine.queues.is_idle());
    machine.arrive("reader", Width::ONE);
    assert_eq!(machine.queues.waiting(), 1);
    machine.until(60 * MILLI);
    assert_eq!(machine.served["reader"].0, 50 * MILLI);
    // More seats than the level has: fewer, for longer.
    let mut machine = Machine::new(QUEUES, 2, 10 * MILLI);
    machine.arrive("writer", write);
    machine.until(10 * MILLI);
    machine.arrive("reader", Width::ONE);
    machine.until(Duration::from_secs(1));
    assert!(machine.queues.is_idle());
    assert_eq!(machine.served["reader"].0, 125 * MILLI);
}

#[test]
fn requests_without_a_seat_are_rejected_queued_or_exempt() {
    for (name, response, limit, arrivals, expected) in [
        ("exempt", Overflow::Exempt, 0, 100, (100, 0, 0)),
        ("rejecting", Overflow::Reject, 13, 100, (13, 0, 87)),
        ("queuing", Overflow::Queue { queues: 1, hand: 1, length: 7 }, 13, 100, (13, 7, 80)),
        ("halted", Overflow::Queue { queues: 1, hand: 1, length: 7 }, 0, 10, (0, 7, 3)),
        ("without queues", Overflow::Queue { queues: 0, hand: 0, length: 0 }, 1, 10, (1, 1, 8)),
    ] {
        let mut machine = Machine::new(response, limit, MILLI);
        (0..arrivals).for_each(|_| machine.arrive("flow", Width::ONE));
        let refused = machine.served.get("flow").map_or(0, |served| served.2);
        assert_eq!((machine.running.len(), machine.queues.waiting(), refused), expected, "{name}");
        assert_eq!(machine.queues.tally.refused, refused);
    }
}

#[test]
fn a_request_that_gives_up_makes_room_in_its_queue() {
    let mut queues: Queues<u32> = Queues::new(QUEUES, 1, Duration::ZERO);
    let mut seated = Vec::new();
    let mut tickets: Vec<Ticket> = Vec::new();
    for number in 0..20 {
        match queues.arrive(Duration::ZERO, 7, Width::ONE, || number) {
            Arrival::Seated(seats) => seated.push(seats),
            Arrival::Waits(ticket) => tickets.push(ticket),
            Arrival::Refused(_) => panic!("the queue has room"),
        }
    }
    assert_eq!((seated.len(), tickets.len()), (1, 19));
    assert!(tickets.iter().all(|ticket| queues.leave(MILLI, *ticket)));
    assert!(!queues.leave(MILLI, tickets[0]));
    assert_eq!((queues.waiting(), queues.demand()), (0, 1));
    seated.into_iter().for_each(|seats| queues.finish(MILLI, seats));
    assert!(queues.is_idle() && queues.dispatch(MILLI).is_empty());
}

/// A level from the JSON of its spec.
fn level(name: &str, spec: &str) -> Arc<PriorityLevel> {
    let text = format!(r#"{{"metadata":{{"name":"{name}","uid":"u-{name}"}},"spec":{spec}}}"#);
    Arc::new(serde_json::from_str(&text).unwrap())
}

fn limited(name: &str, shares: u32, lendable: u32) -> Arc<PriorityLevel> {
    let response = r#"{"type":"Queue","queuing":{"queues":8,"handSize":2,"queueLengthLimit":5}}"#;
    level(
        name,
        &format!(
            r#"{{"type":"Limited","limited":{{"nominalConcurrencyShares":{shares},"lendablePercent":{lendable},"limitResponse":{response}}}}}"#
        ),
    )
}

#[test]
fn seats_move_to_levels_with_demand_and_back() {
    let mut levels: Levels<()> = Levels::new(100, Duration::ZERO);
    drop(levels.configure(Duration::ZERO, vec![limited("busy", 45, 50), limited("calm", 50, 80)]));
    let seats = |levels: &Levels<()>, name: &str| {
        levels.report().into_iter().find(|level| level.name == name).unwrap().seats
    };
    let mut taken = Vec::new();
    let mut second = 0;
    // The level "busy" always has demand.
    for _ in 0..6 {
        second += 10;
        for _ in 0..100 {
            let now = Duration::from_secs(second);
            if let (Arrival::Seated(seats), _) = levels.arrive(now, "busy", 1, Width::ONE, || ()) {
                taken.push(seats);
            }
        }
    }
    let (busy, calm) = (seats(&levels, "busy"), seats(&levels, "calm"));
    assert!(busy > 45 && (10..50).contains(&calm), "{busy} {calm}");
    assert!(busy + calm <= 101, "{busy} {calm}");
    let now = Duration::from_secs(second + 1);
    for seats in taken {
        drop(levels.finish(now, "busy", seats));
    }
    // A level whose object is deleted remains until its requests end.
    drop(levels.configure(now, vec![limited("busy", 45, 50)]));
    assert!(!levels.has("calm") && levels.has("busy") && levels.has(EXEMPT) && levels.has(CATCH_ALL));
}

#[test]
fn deleted_levels_remain_until_their_requests_end() {
    let mut levels: Levels<&str> = Levels::new(100, Duration::ZERO);
    drop(levels.configure(Duration::ZERO, vec![limited("gone", 50, 0), limited("stays", 50, 0)]));
    let (Arrival::Seated(seats), _) = levels.arrive(MILLI, "gone", 1, Width::ONE, || "first") else {
        panic!("the level has free seats")
    };
    drop(levels.configure(MILLI, vec![limited("stays", 50, 0)]));
    let names = |levels: &Levels<&str>| levels.report().into_iter().map(|it| it.name).collect::<Vec<_>>();
    assert_eq!(names(&levels), ["catch-all", "exempt", "gone", "stays"]);
    assert!(!levels.has("gone"));
    drop(levels.finish(2 * MILLI, "gone", seats));
    assert_eq!(names(&levels), ["catch-all", "exempt", "stays"]);
}

#[test]
fn inconsistent_levels_are_ignored() {
    for (name, spec, expected) in [
        ("exempt", r#"{"type":"Exempt","exempt":{}}"#, true),
        ("exempt", r#"{"type":"Limited","limited":{}}"#, false),
        ("other", r#"{"type":"Exempt","exempt":{}}"#, false),
        ("other", r#"{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}"#, true),
        ("other", r#"{"type":"Limited"}"#, false),
    ] {
        assert_eq!(level(name, spec).is_consistent(), expected, "{name} {spec}");
    }
}

#[test]
fn schemas_match_by_precedence_and_then_by_name() {
    let schema = |name: &str, precedence: i32, level: &str| {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"matchingPrecedence":{precedence},"priorityLevelConfiguration":{{"name":"{level}"}}}}}}"#
        );
        Arc::new(serde_json::from_str::<Schema>(&text).unwrap())
    };
    let all = [
        schema("late", 900, "there"),
        schema("b", 50, "there"),
        schema("a", 50, "there"),
        schema("dangling", 1, "nowhere"),
    ];
    let order = in_order(all.into_iter(), |level| level == "there");
    let names: Vec<&str> = order.iter().map(|schema| schema.metadata.name.as_str()).collect();
    assert_eq!(names, ["exempt", "a", "b", "late", "catch-all"]);
    assert!(mandatory::<PriorityLevel>(EXEMPT).is_exempt());
}
