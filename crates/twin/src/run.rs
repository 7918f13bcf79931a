//! A whole run: stories from a seed until the time is up; differences are shrunk and reported.

use crate::{
    compare::{self, Difference},
    generate,
    known::Known,
    play::{Compared, Stage},
    servers::{Programs, Servers},
    shrink::shrink,
    story::{Request, Step, Story},
};
use anyhow::Result;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use world::{Moment, World};

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub time: Duration,
    /// Only this story, if set.
    pub story: Option<u64>,
    /// Only stories of this theme, if set.
    pub theme: Option<String>,
    /// Stories that are played at once.
    pub at_once: usize,
    /// Whether to compare the order of an object's members, which has no meaning in JSON.
    pub with_order: bool,
    /// The run ends after this many differences: more would hide the first ones.
    pub difference_limit: usize,
    /// Whether differences of control loops are only told, neither repeated nor shrunk.
    pub is_raw: bool,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub stories: u64,
    pub compared: u64,
    /// Differences with distinct causes, judged by their texts.
    pub differences: usize,
    /// Not reproduced when the story was run again.
    pub unsteady: usize,
    /// How often each known difference occurred.
    pub known: BTreeMap<String, u64>,
    seen: BTreeSet<String>,
}

impl Tally {
    pub(crate) fn has_seen(&self, signature: &str) -> bool {
        self.seen.contains(signature)
    }

    pub(crate) fn see(&mut self, signature: String) {
        self.seen.insert(signature);
    }
}

struct Run {
    world: World,
    plan: Plan,
    known: Known,
    next: AtomicU64,
    start: Moment,
    tally: Mutex<Tally>,
}

pub async fn run(world: &World, programs: &Programs, plan: Plan) -> Result<Tally> {
    let known = Known::read()?;
    let mut servers = Servers::start(world, programs).await?;
    let mut stage = Stage::new(world, &servers);
    stage.play(&generate::opening()).await;
    print_line(&format!("both servers are ready; seed {}", plan.seed));
    let first = plan.story.unwrap_or(0);
    let run = Run {
        world: world.clone(),
        next: AtomicU64::new(first),
        start: world.now(),
        known,
        plan,
        tally: Mutex::default(),
    };
    // One task plays all stories: it mostly waits for the servers.
    futures::future::join_all((0..run.plan.at_once).map(|_| run.work(Stage::new(world, &servers)))).await;
    servers.check_alive()?;
    let tally = run.tally().clone();
    Ok(tally)
}

impl Run {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(&self, mut stage: Stage) {
        while self.world.now().since(self.start) < self.plan.time
            && self.tally().differences < self.plan.difference_limit
        {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.plan.story.is_some_and(|only| only != number) {
                return;
            }
            let story = generate::story(self.plan.seed, number);
            if self.plan.theme.as_ref().is_some_and(|wanted| wanted != story.theme) {
                continue;
            }
            self.play(&mut stage, number, story).await;
        }
    }

    async fn play(&self, stage: &mut Stage, number: u64, story: Story) {
        let compared = stage.play(&story).await;
        {
            let mut tally = self.tally();
            tally.stories += 1;
            tally.compared += compared.len() as u64;
        }
        let Some((at, difference)) = self.first_news(&story, &compared) else { return };
        let mut candidate = story.clone();
        candidate.steps.truncate(at + 1);
        if !self.shows(stage, &candidate, &difference).await {
            return self.report_unsteady(number, &story.steps[at].request, &difference);
        }
        let smallest =
            shrink(candidate, async |story: &Story| self.shows(stage, story, &difference).await).await;
        self.report(stage, number, &smallest, &difference).await;
    }

    fn differences(&self, step: &Compared) -> Vec<Difference> {
        let mut found = compare::differences(&step.real, &step.ours);
        found.retain(|difference| self.plan.with_order || !difference.path.ends_with(compare::ORDER));
        found
    }

    /// The first difference of a story that is neither known nor reported before.
    fn first_news(&self, story: &Story, compared: &[Compared]) -> Option<(usize, Difference)> {
        for step in compared {
            let request = &story.steps[step.at].request;
            let mut stops = false;
            let mut news = Vec::new();
            for difference in self.differences(step) {
                stops |= request.method != "GET" && changes_state(&difference);
                match self.known.reason(&story.steps[..=step.at], &difference) {
                    Some(reason) => *self.tally().known.entry(reason.to_owned()).or_default() += 1,
                    None => news.push(difference),
                }
            }
            // A difference reported before mostly explains the others of the same response.
            let is_reported = news.iter().any(|it| self.tally().seen.contains(&signature(request, it)));
            if let Some(first) = news.into_iter().next().filter(|_| !is_reported) {
                self.tally().seen.insert(signature(request, &first));
                return Some((step.at, first));
            }
            if stops {
                // Later differences follow from this write.
                return None;
            }
        }
        None
    }

    /// Whether the last step of a story shows this difference.
    async fn shows(&self, stage: &mut Stage, story: &Story, wanted: &Difference) -> bool {
        let compared = stage.play(story).await;
        let Some(last) = compared.last().filter(|last| last.at + 1 == story.steps.len()) else {
            return false;
        };
        self.differences(last)
            .iter()
            .any(|found| is_same_sort(found, wanted) && self.known.reason(&story.steps, found).is_none())
    }

    /// A difference that does not occur again when the story is repeated: one of the servers was late.
    fn report_unsteady(&self, number: u64, request: &Request, difference: &Difference) {
        self.tally().unsteady += 1;
        print_line(&format!(
            "-- unsteady: seed {} story {number}: {request}\n  {difference}",
            self.plan.seed
        ));
    }

    async fn report(&self, stage: &mut Stage, number: u64, story: &Story, wanted: &Difference) {
        let compared = stage.play(story).await;
        let mut found = Vec::new();
        if let Some(last) = compared.last() {
            found = self.differences(last);
            found.retain(|difference| self.known.reason(&story.steps[..=last.at], difference).is_none());
        }
        let Some(last) = story.steps.last() else { return };
        if found.is_empty() {
            return self.report_unsteady(number, &last.request, wanted);
        }
        let count = {
            let mut tally = self.tally();
            tally.differences += 1;
            tally.seen.extend(found.iter().map(|difference| signature(&last.request, difference)));
            tally.differences
        };
        let after = self.world.now().since(self.start).as_secs();
        let mut text = format!(
            "== difference {count} after {after} s: seed {} story {number} ({})\n",
            self.plan.seed, story.theme
        );
        for Step { request, .. } in &story.steps {
            text.push_str(&format!("  {request}\n"));
        }
        for difference in found.iter().take(5) {
            text.push_str(&format!("  {difference}\n"));
        }
        print_line(&text);
    }
}

/// Whether a difference in the response to a write means that the servers hold different objects from here
/// on.
fn changes_state(difference: &Difference) -> bool {
    let marks = ["resourceVersion", "managedFields", "generation", "deletionTimestamp", "line"];
    difference.path == "status" || marks.iter().any(|mark| difference.path.contains(mark))
}

fn signature(request: &Request, difference: &Difference) -> String {
    format!("{} {}", request.method, difference.signature())
}

fn is_same_sort(found: &Difference, wanted: &Difference) -> bool {
    let place = |difference: &Difference| -> String {
        difference.path.chars().filter(|letter| !letter.is_ascii_digit()).collect()
    };
    let code = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    place(found) == place(wanted)
        && (wanted.path != "status"
            || (code(&found.real) == code(&wanted.real) && code(&found.ours) == code(&wanted.ours)))
}

pub fn print_line(line: &str) {
    let mut out = std::io::stdout();
    // A closed output is no failure: its reader has seen enough.
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}
