//! Bookmarks: events that only say how far a watch is.
//!
//! Most of what an idle server does is to send them, so a watch encodes its first one and puts the next
//! revisions into its bytes.

use super::frame;
use crate::{answer, call::Call};
use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde_json::json;
use store::Revision;

/// The bookmarks of one watch.
#[derive(Debug, Default)]
pub(super) struct Bookmarks(Option<Template>);

/// The bytes of an event before and after its revision.
#[derive(Debug)]
struct Template {
    before: Bytes,
    after: Bytes,
}

impl Bookmarks {
    /// A bookmark in the client's form.
    pub(super) fn event(&mut self, call: &Call, revision: Revision, with_columns: bool) -> Bytes {
        if let Some(template) = &self.0 {
            return template.event(revision);
        }
        let event = encode(call, revision, false, with_columns);
        if !with_columns {
            self.0 = Template::of(&event, revision);
        }
        event
    }
}

/// The bookmark after the initial events of a watch.
pub(super) fn end_of_initial_events(call: &Call, revision: Revision, with_columns: bool) -> Bytes {
    encode(call, revision, true, with_columns)
}

/// An object with only a resourceVersion.
fn encode(call: &Call, revision: Revision, ends_initial: bool, with_columns: bool) -> Bytes {
    let mut object = json!({
        "kind": call.served.resource.kind, "apiVersion": call.served.api_version(),
        "metadata": {"resourceVersion": revision.to_string()},
    });
    if ends_initial {
        object["metadata"]["annotations"] = json!({answer::INITIAL_EVENTS_END: "true"});
    }
    frame(call.form, "BOOKMARK", &answer::value_bytes(call, &object, with_columns))
}

impl Template {
    /// `None` if the event is not JSON with one resourceVersion: lengths within protobuf would change, and
    /// tables have several.
    fn of(event: &Bytes, revision: Revision) -> Option<Template> {
        const FIELD: &str = "\"resourceVersion\":\"";
        let field = format!("{FIELD}{revision}\"");
        let mut found = memmem::find_iter(event, field.as_bytes());
        let (at, None) = (found.next()?, found.next()) else { return None };
        let start = at + FIELD.len();
        let end = at + field.len() - 1;
        Some(Template { before: event.slice(..start), after: event.slice(end..) })
    }

    fn event(&self, revision: Revision) -> Bytes {
        let revision = revision.to_string();
        let mut event = BytesMut::with_capacity(self.before.len() + revision.len() + self.after.len());
        event.extend_from_slice(&self.before);
        event.extend_from_slice(revision.as_bytes());
        event.extend_from_slice(&self.after);
        event.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_revision_is_put_into_the_bytes_of_a_bookmark() {
        let json = |revision: &str| {
            Bytes::from(format!(
                "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{revision}\"}}}}}}\n"
            ))
        };
        let template = Template::of(&json("9"), Revision(9)).unwrap();
        assert_eq!(template.event(Revision(12345)), json("12345"));
        let twice = [json("9"), json("9")].concat().into();
        for other in [json("99"), twice, Bytes::from_static(b"k8s\0 9")] {
            assert!(Template::of(&other, Revision(9)).is_none(), "{other:?}");
        }
    }
}
