//! The pages of `docs/guide` from the second on: their code is compiled and run as tests of this crate. The first page
//! shows the files of `examples/greeting`.

#[doc = include_str!("../../../docs/guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../../../docs/guide/webhooks.md")]
pub mod webhooks {}

#[doc = include_str!("../../../docs/guide/versions.md")]
pub mod versions {}

#[doc = include_str!("../../../docs/guide/status-and-events.md")]
pub mod status_and_events {}

#[doc = include_str!("../../../docs/guide/leader-election.md")]
pub mod leader_election {}

#[doc = include_str!("../../../docs/guide/deploying.md")]
pub mod deploying {}

#[doc = include_str!("../../../docs/guide/nodes.md")]
pub mod nodes {}

#[doc = include_str!("../../../docs/guide/requests.md")]
pub mod requests {}
