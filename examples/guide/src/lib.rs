//! The pages of `docs/guide` from the second on: their code is compiled and run as tests of this crate. The first page
//! shows the files of `examples/greeting`.

#[doc = include_str!("../../../docs/guide/2-testing.md")]
pub mod testing {}

#[doc = include_str!("../../../docs/guide/3-webhooks.md")]
pub mod webhooks {}

#[doc = include_str!("../../../docs/guide/4-versions.md")]
pub mod versions {}

#[doc = include_str!("../../../docs/guide/5-status-and-events.md")]
pub mod status_and_events {}

#[doc = include_str!("../../../docs/guide/6-leader-election.md")]
pub mod leader_election {}

#[doc = include_str!("../../../docs/guide/7-deploying.md")]
pub mod deploying {}

#[doc = include_str!("../../../docs/guide/8-nodes.md")]
pub mod nodes {}

#[doc = include_str!("../../../docs/guide/9-requests.md")]
pub mod requests {}
