//! The contract on the stores of this machine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod contract;
mod durability;

use contract::{LIMITS, Stage};
use std::sync::Arc;
use store::{Embedded, Memory, Options};
use world::World;

mod memory {
    use super::contract;
    use super::*;

    async fn fixture(world: World) -> Stage {
        let scratch = tempfile::tempdir().unwrap();
        Stage { world, store: Arc::new(Memory::with_limits(LIMITS)), scratch, behind: Box::new(()) }
    }

    contract::run_contract!(fixture);
}

mod embedded {
    use super::contract;
    use super::*;

    async fn fixture(world: World) -> Stage {
        let scratch = tempfile::tempdir().unwrap();
        let options = Options { limits: LIMITS, ..Options::default() };
        let store = Embedded::open(&world, &scratch.path().join("data"), options).await.unwrap();
        Stage { world, store: Arc::new(store), scratch, behind: Box::new(()) }
    }

    contract::run_contract!(fixture);
}
