//! A whole run: stories of workloads on both sides until the time is up; differences are shrunk and reported.

use super::{
    WorkloadStory,
    compare::differences,
    generate::{Limits, story},
    level::level,
    play::{self, WorkloadPlayer},
};
use crate::{
    compare::Difference,
    known::Known,
    run::{Plan, Tally, print_line},
    servers::{LoopPrograms, Servers},
};
use anyhow::Result;
use futures::future::{join, join_all};
use std::{
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use world::{Moment, World};

/// Stories that are tried at once while one is shrunk.
const CANDIDATES: usize = 6;
/// Differences of a story that are shown.
const SHOWN: usize = 12;
/// Rounds of candidates for one difference.
const ROUNDS: usize = 8;

struct WorkloadRun {
    world: World,
    plan: Plan,
    known: Known,
    real: SocketAddr,
    ours: SocketAddr,
    next: AtomicU64,
    namespaces: AtomicU64,
    start: Moment,
    tally: Mutex<Tally>,
}

pub async fn run(world: &World, programs: &LoopPrograms, plan: Plan) -> Result<Tally> {
    let known = Known::read_of_workloads()?;
    let mut servers = Servers::start_control_loops(world, programs).await?;
    for address in [servers.real, servers.ours] {
        if let Err(error) = play::wait_for_nodes(world, address).await {
            return Err(error.context(servers.logs()));
        }
    }
    print_line(&format!("both control planes are ready; seed {}", plan.seed));
    let run = WorkloadRun {
        world: world.clone(),
        known,
        real: servers.real,
        ours: servers.ours,
        next: AtomicU64::new(plan.story.unwrap_or(0)),
        namespaces: AtomicU64::new(0),
        start: world.now(),
        plan,
        tally: Mutex::default(),
    };
    join_all((0..run.plan.at_once).map(|_| run.work())).await;
    servers.check_alive()?;
    let tally = run.tally().clone();
    Ok(tally)
}

impl WorkloadRun {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(&self) {
        while self.world.now().since(self.start) < self.plan.time
            && self.tally().differences < self.plan.difference_limit
        {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.plan.story.is_some_and(|only| only != number) {
                return;
            }
            let story = story(self.plan.seed, number, Limits { is_short: true });
            self.play(number, story).await;
        }
    }

    /// Plays a story on both sides; returns the differences that are not known.
    async fn compare(&self, story: &WorkloadStory) -> Result<Vec<Difference>> {
        let namespace = format!("story-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        let mut sides =
            [self.real, self.ours].map(|address| WorkloadPlayer::new(&self.world, address, &namespace));
        let [real, ours] = &mut sides;
        let (real, ours) = join(real.play(story), ours.play(story)).await;
        let mut found = differences(&level(&namespace, real?), &level(&namespace, ours?));
        let steps: Vec<String> = story.steps.iter().map(ToString::to_string).collect();
        found.retain(|difference| match self.known.reason_in_story(&steps, difference) {
            Some(reason) => {
                *self.tally().known.entry(reason.to_owned()).or_default() += 1;
                false
            }
            None => true,
        });
        Ok(found)
    }

    async fn play(&self, number: u64, story: WorkloadStory) {
        let found = match self.compare(&story).await {
            Ok(found) => found,
            Err(error) => return print_line(&format!("seed {} story {number}: {error:#}", self.plan.seed)),
        };
        let wanted = {
            let mut tally = self.tally();
            tally.stories += 1;
            tally.compared += 1;
            let is_new = |it: &&Difference| !tally.has_seen(&signature(it));
            let wanted = found.iter().find(is_new).cloned();
            found.iter().for_each(|it| tally.see(signature(it)));
            wanted
        };
        let Some(wanted) = wanted else { return };
        if self.plan.is_raw {
            self.tally().differences += 1;
            return self.report(number, &story, &wanted, &found);
        }
        if !self.shows(&story, &wanted).await {
            self.tally().unsteady += 1;
            return print_line(&format!("-- unsteady: seed {} story {number}: {wanted}", self.plan.seed));
        }
        let smallest = self.shrink(story, &wanted).await;
        self.tally().differences += 1;
        self.report(number, &smallest, &wanted, &found);
    }

    fn report(&self, number: u64, story: &WorkloadStory, wanted: &Difference, found: &[Difference]) {
        let all = found.iter().take(SHOWN).map(|it| format!("  {it}\n")).collect::<String>();
        let seed = self.plan.seed;
        print_line(&format!("== seed {seed} story {number}\n{story}  {wanted}\n  all:\n{all}"));
    }

    async fn shows(&self, story: &WorkloadStory, wanted: &Difference) -> bool {
        let found = self.compare(story).await.unwrap_or_default();
        found.iter().any(|it| signature(it) == signature(wanted))
    }

    /// Drops steps one by one, several candidates at once: each has its own namespace.
    async fn shrink(&self, story: WorkloadStory, wanted: &Difference) -> WorkloadStory {
        let (mut best, mut at) = (story, 0);
        for _ in 0..ROUNDS {
            let candidates: Vec<WorkloadStory> = (at..best.steps.len())
                .take(CANDIDATES)
                .map(|dropped| {
                    let mut candidate = best.clone();
                    // From the end: later steps are rarely the cause.
                    candidate.steps.remove(best.steps.len() - 1 - dropped);
                    candidate
                })
                .collect();
            if candidates.is_empty() {
                break;
            }
            let shown = join_all(candidates.iter().map(|candidate| self.shows(candidate, wanted))).await;
            match shown.iter().position(|shows| *shows) {
                Some(first) => {
                    best = candidates[first].clone();
                    at += first;
                }
                None => at += candidates.len(),
            }
        }
        best
    }
}

/// Equal for differences of the same cause: without the numbers of workloads and revisions.
fn signature(difference: &Difference) -> String {
    let without_numbers =
        |text: &str| -> String { text.chars().filter(|letter| !letter.is_ascii_digit()).collect() };
    without_numbers(&difference.path)
}
