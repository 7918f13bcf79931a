//! Large answers in, small ones out, for callers that ask for it.

use super::Body;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use std::io::Write;
use world::World;

// Kubernetes: smaller ones cost more time than they save.
const THRESHOLD: u64 = 128 * 1024;
// Kubernetes: level 1 takes the least time, and almost the same space.
const LEVEL: u32 = 1;

/// Whether a caller takes compressed answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gzip {
    Yes,
    No,
}

impl Gzip {
    pub(crate) fn asked_for(headers: &HeaderMap) -> Gzip {
        // Kubernetes: the first header, and the plain word only.
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        match accepted.unwrap_or_default().split(',').any(|coding| coding.trim() == "gzip") {
            true => Gzip::Yes,
            false => Gzip::No,
        }
    }

    /// Whether so many bytes should go out compressed.
    pub(crate) fn suits(self, size: u64) -> bool {
        self == Gzip::Yes && size > THRESHOLD
    }

    /// Compresses what is large and all there; a watch is neither.
    pub(crate) async fn apply(self, world: &World, response: Response<Body>) -> Response<Body> {
        let is_worth_it = response.body().size_hint().exact().is_some_and(|size| self.suits(size));
        if !is_worth_it || response.headers().contains_key(header::CONTENT_ENCODING) {
            return response;
        }
        let (head, body) = response.into_parts();
        let Ok(whole) = body.collect().await;
        let whole = whole.to_bytes();
        let body = world.blocking(move || compress(&whole)).await;
        mark(Response::from_parts(head, Full::new(body).boxed_unsync()))
    }
}

/// Says that the body is compressed.
pub(crate) fn mark(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

pub(crate) fn compress(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::new(LEVEL));
    encoder.write_all(body).expect("memory takes everything");
    encoder.finish().expect("memory takes everything").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_say_gzip_get_it() {
        for (accepted, expected) in [
            ("gzip", Gzip::Yes),
            ("deflate, gzip", Gzip::Yes),
            ("br,gzip ,*", Gzip::Yes),
            ("", Gzip::No),
            ("identity", Gzip::No),
            ("gzip;q=0", Gzip::No),
            ("x-gzip", Gzip::No),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
            assert_eq!(Gzip::asked_for(&headers), expected, "{accepted}");
        }
        assert_eq!(Gzip::asked_for(&HeaderMap::new()), Gzip::No);
    }
}
