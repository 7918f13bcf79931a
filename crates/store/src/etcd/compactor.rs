//! Compacts the cluster from time to time; one of the processes that share it does so in each interval.
//!
//! The processes agree through the version of one key: the one that raises it compacts to the revision of one
//! interval ago. Kubernetes' API servers use the same key in the same way, so both can share a cluster.

use super::{
    COMPACTION_KEY,
    connection::{Connection, Effect},
    header_revision, revision, wire,
};
use crate::{Error, Revision, window::Window};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use world::World;

/// Runs until its task is dropped.
pub(crate) async fn compact_from_time_to_time(
    world: World,
    connection: Arc<Connection>,
    window: Arc<Window>,
    interval: Duration,
) {
    let mut round = Round { version: 0, revision: Revision(0) };
    loop {
        world.sleep(world.jitter(interval, 0.1)).await;
        match round.compact_if_first(&connection, &window).await {
            Ok(next) => round = next,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "compaction of etcd failed");
            }
        }
    }
}

/// The state that this process saw one interval ago.
#[derive(Clone, Copy, Debug)]
struct Round {
    version: i64,
    revision: Revision,
}

impl Round {
    async fn compact_if_first(self, connection: &Connection, window: &Window) -> Result<Round, Error> {
        let key = Bytes::from_static(COMPACTION_KEY);
        let put = wire::PutRequest { key: key.clone(), value: self.revision.to_string().into() };
        let get = wire::RangeRequest { key: key.clone(), ..Default::default() };
        let compare = wire::Compare {
            target: wire::CompareTarget::Version as i32,
            key,
            operand: Some(wire::Operand::Version(self.version)),
        };
        let request = wire::TxnRequest {
            compare: vec![compare],
            success: vec![wire::RequestOp { request: Some(wire::Request::Put(put)) }],
            failure: vec![wire::RequestOp { request: Some(wire::Request::Range(get)) }],
        };
        let answer: wire::TxnResponse = connection.call(wire::TXN, request, Effect::Writes).await?;
        let now = header_revision(answer.header)?;
        if !answer.succeeded {
            let found = answer.responses.into_iter().find_map(|op| op.response);
            let Some(wire::Response::Range(found)) = found else { return Ok(self) };
            let version = found.kvs.first().map_or(0, |kv| kv.version);
            return Ok(Round { version, revision: now });
        }
        if self.revision > Revision(0) {
            compact(connection, window, self.revision).await?;
        }
        Ok(Round { version: self.version + 1, revision: now })
    }
}

pub(crate) async fn compact(connection: &Connection, window: &Window, floor: Revision) -> Result<(), Error> {
    let request = wire::CompactionRequest { revision: floor.0 as i64 };
    let answer: Result<wire::CompactionResponse, _> =
        connection.call(wire::COMPACT, request, Effect::Reads).await;
    answer?;
    window.forget(floor.min(window.head()).max(revision(0)));
    Ok(())
}
