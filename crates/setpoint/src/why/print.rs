//! A story as text.

use super::story::Story;
use crate::client::{age, table::Layout};
use world::Timestamp;

pub(super) fn text(story: &Story, now: Timestamp) -> String {
    let ago = |time: Option<Timestamp>| match time {
        Some(time) => age::short(now.duration_since(time).as_secs()),
        None => "?".to_owned(),
    };
    let mut out = format!("why: {}\n\n{}", story.why, story.title);
    if !story.state.is_empty() {
        out.push_str(&format!(", {}", story.state));
    }
    out.push_str(&format!(", {} old\n", ago(story.created)));
    if !story.owners.is_empty() {
        out.push_str(&format!("owned by {}\n", story.owners.join(", which is owned by ")));
    }
    if !story.deletion.is_empty() {
        out.push_str("\nbeing deleted, and waits for:\n");
        story.deletion.iter().for_each(|holder| out.push_str(&format!("  {holder}\n")));
    }
    if !story.conditions.is_empty() {
        let rows = story.conditions.iter().map(|condition| {
            let mark = if condition.is_bad { "!" } else { " " };
            vec![
                format!("{mark} {}", condition.name),
                condition.status.clone(),
                ago(condition.since),
                condition.reason.clone(),
                condition.message.clone(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        out.push_str("\nconditions\n");
        out.push_str(&tidy(&Layout::default().lines(&rows)));
    }
    out.push_str("\nhistory\n");
    if story.left_out > 0 {
        out.push_str(&format!("  … {} older entries\n", story.left_out));
    }
    let rows: Vec<_> = story
        .history
        .iter()
        .map(|entry| vec![format!("  {}", ago(entry.time)), entry.text.clone()])
        .collect();
    out.push_str(&tidy(&Layout::default().lines(&rows)));
    out
}

/// Without spaces at the ends of lines.
fn tidy(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
