//! Runs an operation with a number of clients for some time, and measures its rate and latencies.

use super::{
    client::Client,
    latency::Latencies,
    operation::{Operation, Seat},
    place::Place,
};
use anyhow::Result;
use futures::future::try_join_all;
use std::{sync::Arc, time::Duration};
use world::{Moment, World};

/// The load of all clients together.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) operation: Operation,
    pub(crate) clients: usize,
    pub(crate) span: Duration,
    pub(crate) edition: u64,
    /// The most requests of each client; a delete can only delete created objects.
    pub(crate) most: Option<Vec<u64>>,
}

#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) latencies: Latencies,
    /// Requests done, by client.
    pub(crate) done: Vec<u64>,
    pub(crate) errors: u64,
    pub(crate) complaint: Option<String>,
    pub(crate) elapsed: Duration,
}

impl Measured {
    pub(crate) fn per_second(&self) -> f64 {
        self.done.iter().sum::<u64>() as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }
}

pub(crate) async fn measure(world: &World, place: &Arc<Place>, load: &Load) -> Result<Measured> {
    let connections = (0..load.clients).map(|_| Client::connect(world, &place.target));
    let connections = try_join_all(connections).await?;
    let start = world.now();
    let tasks: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(client, connection)| {
            let seat = Seat { client, clients: load.clients, edition: load.edition };
            let (place, load) = (Arc::clone(place), load.clone());
            let one = One { world: world.clone(), place, connection, seat };
            world.spawn("client", one.run(load, start))
        })
        .collect();
    let mut all = Measured::default();
    for task in tasks {
        let (one, ended) = task.await??;
        all.latencies.merge(&one.latencies);
        all.done.extend(one.done);
        all.errors += one.errors;
        all.complaint = all.complaint.or(one.complaint);
        all.elapsed = all.elapsed.max(ended.since(start));
    }
    Ok(all)
}

/// One client at work.
struct One {
    world: World,
    place: Arc<Place>,
    connection: Client,
    seat: Seat,
}

impl One {
    async fn run(mut self, load: Load, start: Moment) -> Result<(Measured, Moment)> {
        let mut measured = Measured::default();
        let most = load.most.map_or(u64::MAX, |most| most.get(self.seat.client).copied().unwrap_or(0));
        let (end, mut done, mut now) = (start + load.span, 0, self.world.now());
        for number in 0..most {
            if now >= end {
                break;
            }
            let request = self.seat.request(&self.place, load.operation, number);
            let sent = self.world.now();
            let answer = self.connection.send(request).await;
            now = self.world.now();
            match answer {
                Ok(answer) if answer.status.is_success() => {
                    measured.latencies.record(now.since(sent));
                    done += 1;
                }
                Ok(answer) => measured.fails(answer.complaint()),
                Err(error) => {
                    measured.fails(format!("{error:#}"));
                    self.connection = Client::connect(&self.world, &self.place.target).await?;
                }
            }
        }
        measured.done = vec![done];
        Ok((measured, now))
    }
}

impl Measured {
    fn fails(&mut self, complaint: String) {
        self.errors += 1;
        self.complaint.get_or_insert(complaint);
    }
}
