//! Shuffle sharding: the few queues that a flow may wait in, so that a noisy flow fills only some queues.

use aws_lc_rs::digest::{SHA256, digest};

/// Limit on the queues of one flow: more would need more random bits than the hash has.
// Kubernetes: what its validation allows.
pub(super) const MAX_HAND: usize = 15;

/// The hash of a flow, unique among all schemas.
pub(super) fn flow(schema: &str, distinguisher: &str) -> u64 {
    let text = [schema.as_bytes(), &[0], distinguisher.as_bytes()].concat();
    let hash = digest(&SHA256, &text);
    let first = hash.as_ref().first_chunk().expect("the digest has 32 bytes");
    u64::from_le_bytes(*first)
}

/// Deals `hand` different cards from a deck, the same ones for the same hash.
pub(super) fn deal(mut hash: u64, deck: u32, hand: usize) -> impl Iterator<Item = u32> {
    let hand = hand.min(MAX_HAND).min(deck as usize);
    let mut left = [0; MAX_HAND];
    for (index, drawn) in left.iter_mut().enumerate().take(hand) {
        let cards = u64::from(deck) - index as u64;
        *drawn = (hash % cards) as u32;
        hash /= cards;
    }
    (0..hand).map(move |index| {
        // A draw is an index among the cards left: each earlier card at or below it moves it up.
        let earlier = left[..index].iter().rev();
        earlier.fold(left[index], |card, before| if card >= *before { card + 1 } else { card })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_hand_holds_different_cards() {
        for (deck, hand) in [(128, 6), (64, 8), (16, 4), (8, 8), (1, 1), (3, 9)] {
            for user in 0..200 {
                let cards: Vec<u32> = deal(flow("schema", &format!("user-{user}")), deck, hand).collect();
                let different: BTreeSet<_> = cards.iter().collect();
                assert_eq!(cards.len(), hand.min(deck as usize));
                assert_eq!(different.len(), cards.len(), "{cards:?}");
                assert!(cards.iter().all(|card| *card < deck), "{cards:?}");
            }
        }
    }

    #[test]
    fn cards_are_dealt_about_equally_often() {
        let mut dealt: BTreeMap<u32, u32> = BTreeMap::new();
        for user in 0..8000 {
            deal(flow("schema", &user.to_string()), 16, 4)
                .for_each(|card| *dealt.entry(card).or_default() += 1);
        }
        assert!(dealt.len() == 16 && dealt.values().all(|count| (1800..2200).contains(count)), "{dealt:?}");
    }
}
