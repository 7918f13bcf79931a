//! Protobuf messages of every built-in kind: a decoded object survives a round trip through protobuf and
//! JSON.

use super::json::survives;
use crate::{
    Target,
    recorded::{Kind, recorded, seed},
};
use kinds::types;
use schema::proto::{self, Envelope};

pub(super) const TARGET: Target = Target { name: "protobuf", check, seeds, words: WORDS };

const WORDS: &[&str] =
    &["k8s\0", "\n\u{2}v1", "\u{12}\u{0}", "\u{1a}", "\u{8}\u{1}", "\u{7f}", "\n\u{4}\n\u{2}"];

fn seeds() -> Vec<Vec<u8>> {
    let some = recorded().iter().filter(|recorded| !recorded.message.is_empty());
    some.map(|recorded| seed(recorded.choice, &[&recorded.message])).collect()
}

fn check(input: &[u8]) {
    let Some((kind, body)) = Kind::chosen(input) else { return };
    if let Ok(envelope) = Envelope::open(body) {
        assert_eq!(Envelope::open(&envelope.seal()), Ok(envelope));
    }
    let Ok(read) = proto::decode(types(), kind.of, body) else { return };
    let written = proto::encode(types(), kind.of, &read);
    let again = proto::decode(types(), kind.of, &written).unwrap();
    assert_eq!(again, read, "through protobuf");
    survives(kind, &read);
}
