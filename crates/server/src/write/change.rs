//! The loop that reads, changes and stores an object, and retries when another writer was faster.

use super::{Checked, Outcome, create, is_released, remove, replace, replace_or_release};
use crate::{call::Call, convert::in_request_version, lookup, refusal::Refusal, stored::Stored};
use serde_json::Value;

/// How often an object is read again because another writer was faster.
const ATTEMPTS: usize = 8;

/// What to do with the object that was read.
pub(crate) enum Next {
    /// Nothing: it is already in the wanted state.
    Keep,
    /// Store it; remove it if it is being deleted and this write removes its last finalizer.
    Write(Checked),
    /// Store it with its deletionTimestamp, even if it has no finalizers.
    Mark(Checked),
    /// Remove it. Kinds with a grace period are stored with their deletionTimestamp first, so that watchers
    /// see it.
    Remove { marked: Option<Checked> },
}

/// How a change ended.
pub(crate) enum Changed {
    /// Nothing was written.
    Kept(Stored),
    Created(Stored),
    /// The state that this write made: stored, or the last state of an object that it removed.
    Written(Stored),
    /// The last state before the removal.
    Removed(Stored),
    /// There was no object, and the change creates none.
    Absent,
    /// Another writer was faster in every attempt.
    Lost,
}

impl Changed {
    /// The object, where there is one; a conflict after `Lost`.
    pub(crate) fn stored(self, call: &Call) -> Result<Stored, Refusal> {
        let name = &call.target.name;
        match self {
            Changed::Kept(stored)
            | Changed::Created(stored)
            | Changed::Written(stored)
            | Changed::Removed(stored) => Ok(stored),
            Changed::Absent => Err(call.not_found(name)),
            Changed::Lost => Err(Refusal::modified(&call.resource(), name)),
        }
    }
}

/// A change of the object that a call names. Called once for each attempt.
pub(crate) trait Change: Send {
    /// What to do with the object, given as stored and in the version of the call.
    fn next(
        &mut self,
        call: &Call,
        stored: &Stored,
        live: Value,
    ) -> impl Future<Output = Result<Next, Refusal>> + Send;

    /// The object to create where there is none.
    fn absent(&mut self, call: &Call) -> impl Future<Output = Result<Option<Checked>, Refusal>> + Send {
        let missing = call.not_found(&call.target.name);
        async { Err(missing) }
    }

    /// Whether the change applies to any state of the object, so that a conflict is retried.
    fn is_unconditional(&self) -> bool {
        true
    }
}

/// A conditional write: reads the current state, and writes if it has not changed since.
pub(crate) trait Attempt: Send {
    type Done;

    /// `None` where another writer was faster.
    fn attempt(&mut self) -> impl Future<Output = Result<Option<Self::Done>, Refusal>> + Send;
}

/// Retries a conditional write until it succeeds; `None` after `ATTEMPTS` conflicts.
pub(crate) async fn try_again<A: Attempt>(write: &mut A) -> Result<Option<A::Done>, Refusal> {
    for _ in 0..ATTEMPTS {
        if let Some(done) = write.attempt().await? {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// Changes the object that the call names.
pub(crate) async fn change(call: &Call, change: &mut impl Change) -> Result<Changed, Refusal> {
    Ok(try_again(&mut ChangeOf { call, change }).await?.unwrap_or(Changed::Lost))
}

struct ChangeOf<'a, C> {
    call: &'a Call,
    change: &'a mut C,
}

impl<C: Change> Attempt for ChangeOf<'_, C> {
    type Done = Changed;

    async fn attempt(&mut self) -> Result<Option<Changed>, Refusal> {
        let ChangeOf { call, change } = self;
        let Some(stored) = lookup::of_call(call, &call.target.name).await? else {
            return create_absent(call, *change).await;
        };
        let live = in_request_version(call, &stored).await?;
        let next = change.next(call, &stored, live).await?;
        let changed = carry_out(call, next, stored).await?;
        Ok(changed.or((!change.is_unconditional()).then_some(Changed::Lost)))
    }
}

/// `None` where another writer has created the object meanwhile.
async fn create_absent(call: &Call, change: &mut impl Change) -> Result<Option<Changed>, Refusal> {
    let Some(checked) = change.absent(call).await? else { return Ok(Some(Changed::Absent)) };
    Ok(match create(call, checked).await? {
        Outcome::Done(stored) => Some(Changed::Created(stored)),
        Outcome::Lost => None,
    })
}

/// `None` where another writer was faster.
async fn carry_out(call: &Call, next: Next, stored: Stored) -> Result<Option<Changed>, Refusal> {
    let outcome = match next {
        Next::Keep => return Ok(Some(Changed::Kept(stored))),
        Next::Write(checked) => replace_or_release(call, checked, &stored).await?,
        Next::Mark(checked) => replace(call, checked, &stored).await?,
        Next::Remove { marked } => return remove_marked(call, marked, stored).await,
    };
    Ok(match outcome {
        Outcome::Done(stored) => Some(Changed::Written(stored)),
        Outcome::Lost => None,
    })
}

async fn remove_marked(
    call: &Call,
    marked: Option<Checked>,
    stored: Stored,
) -> Result<Option<Changed>, Refusal> {
    let outcome = match marked {
        None => remove(call, &call.target.name, &stored).await?,
        Some(marked) => match replace(call, marked, &stored).await? {
            Outcome::Done(last) => return remove_shown(call, last).await.map(Some),
            Outcome::Lost => Outcome::Lost,
        },
    };
    Ok(match outcome {
        Outcome::Done(stored) => Some(Changed::Removed(stored)),
        Outcome::Lost => None,
    })
}

/// Removes an object whose deletionTimestamp watchers have seen: meanwhile one may have written to it, or removed it.
async fn remove_shown(call: &Call, mut last: Stored) -> Result<Changed, Refusal> {
    for _ in 0..ATTEMPTS {
        if let Outcome::Done(stored) = remove(call, &call.target.name, &last).await? {
            return Ok(Changed::Removed(stored));
        }
        let uid = last.text_at(&["metadata", "uid"]);
        let now = lookup::of_call(call, &call.target.name).await?;
        // Kubernetes: the delete has succeeded, also if another client was faster.
        let Some(now) = now.filter(|now| now.text_at(&["metadata", "uid"]) == uid) else {
            return Ok(Changed::Removed(last));
        };
        if !is_released(call, &now.value()?) {
            return Ok(Changed::Written(now));
        }
        last = now;
    }
    Ok(Changed::Lost)
}

#[cfg(test)]
mod tests;
