//! Compresses large responses for clients that accept it.

use super::Body;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use std::{
    convert::Infallible,
    io::Write,
    pin::Pin,
    task::{Context, Poll, ready},
};

// Kubernetes: compressing smaller ones takes more time than it saves.
const THRESHOLD: u64 = 128 * 1024;
// Kubernetes: level 1 is the fastest, and almost as small.
const LEVEL: u32 = 1;
/// Compressed bytes per frame.
const PIECE: usize = 16 << 10;

/// Whether a client accepts gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gzip {
    Yes,
    No,
}

impl Gzip {
    pub(crate) fn accepted_by(headers: &HeaderMap) -> Gzip {
        // Kubernetes: only the first header, and only the plain word.
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        match accepted.unwrap_or_default().split(',').any(|coding| coding.trim() == "gzip") {
            true => Gzip::Yes,
            false => Gzip::No,
        }
    }

    /// Whether a response of that size is compressed.
    pub(crate) fn suits(self, size: u64) -> bool {
        self == Gzip::Yes && size > THRESHOLD
    }

    /// Compresses a large body of known length; a watch has none.
    pub(crate) fn apply(self, response: Response<Body>) -> Response<Body> {
        let is_worth_it = response.body().size_hint().exact().is_some_and(|size| self.suits(size));
        if !is_worth_it || response.headers().contains_key(header::CONTENT_ENCODING) {
            return response;
        }
        mark(response.map(|body| Compressed { body, encoder: Some(encoder(PIECE)) }.boxed_unsync()))
    }
}

/// A body that is compressed while it is sent.
struct Compressed {
    body: Body,
    /// `None` once its last bytes are out.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl http_body::Body for Compressed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            let Some(encoder) = &mut self.encoder else { return Poll::Ready(None) };
            if encoder.get_ref().len() >= PIECE {
                let piece = std::mem::take(encoder.get_mut());
                return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let (Ok(data), Some(encoder)) = (frame.into_data(), &mut self.encoder) {
                        encoder.write_all(&data).expect("writing to memory cannot fail");
                    }
                }
                None => {
                    let last = self
                        .encoder
                        .take()
                        .map(|encoder| encoder.finish().expect("writing to memory cannot fail"));
                    return Poll::Ready(last.map(|last| Ok(Frame::data(last.into()))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

fn encoder(size: usize) -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::with_capacity(size), Compression::new(LEVEL))
}

/// Sets Content-Encoding.
pub(crate) fn mark(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

pub(crate) fn compress(body: &[u8]) -> Bytes {
    let mut encoder = encoder(body.len() / 4);
    encoder.write_all(body).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_accept_gzip_get_it() {
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
            assert_eq!(Gzip::accepted_by(&headers), expected, "{accepted}");
        }
        assert_eq!(Gzip::accepted_by(&HeaderMap::new()), Gzip::No);
    }
}
