//! The headers of SPDY/3.1: one text for all frames of a direction, compressed with a dictionary of the protocol.

use super::Malformed;
use bytes::Buf;
use miniz_oxide::inflate::{
    TINFLStatus,
    core::{DecompressorOxide, decompress, inflate_flags::TINFL_FLAG_HAS_MORE_INPUT},
};
use std::{collections::BTreeMap, fmt};

/// Names, in lower case, and values.
pub(in crate::kubelet) type Headers = BTreeMap<String, String>;

/// The headers of one frame, unpacked: clients send three short ones.
const MAX_UNPACKED: usize = 16 << 10;
/// How far back a compressed text may refer.
const WINDOW: usize = 32 << 10;
/// The bit of zlib's second byte which says that the checksum of a dictionary follows.
const HAS_DICTIONARY: u8 = 0x20;
/// The checksum of the dictionary.
const DICTIONARY: u32 = 0xe3c6_a7c2;

/// The words of the dictionary, which have their lengths in front.
const WORDS: &str = "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,\
accept-ranges,age,allow,authorization,cache-control,connection,content-base,content-encoding,\
content-language,content-length,content-location,content-md5,content-range,content-type,date,etag,\
expect,expires,from,host,if-match,if-modified-since,if-none-match,if-range,if-unmodified-since,\
last-modified,location,max-forwards,pragma,proxy-authenticate,proxy-authorization,range,referer,\
retry-after,server,te,trailer,transfer-encoding,upgrade,user-agent,vary,via,warning,\
www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-cookie,keep-alive,origin";
/// What comes after the words.
const REST: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized\
403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable\
Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,\
text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

fn dictionary() -> Vec<u8> {
    let words = WORDS.split(',').flat_map(|word| {
        let length = u32::try_from(word.len()).unwrap_or_default().to_be_bytes();
        [&length[..], word.as_bytes()].concat()
    });
    words.chain(REST.bytes()).collect()
}

/// Unpacks the headers of a connection, frame by frame.
#[derive(Default)]
pub(super) struct HeaderReader(Option<Box<Unpacker>>);

/// The state of the compressed text.
struct Unpacker {
    state: DecompressorOxide,
    /// A ring; the dictionary counts as text before the first.
    window: Vec<u8>,
    at: usize,
}

impl HeaderReader {
    pub(super) fn read(&mut self, mut packed: &[u8]) -> Result<Headers, Malformed> {
        let unpacker = match &mut self.0 {
            Some(unpacker) => unpacker,
            None => self.0.insert(Box::new(Unpacker::begin(&mut packed)?)),
        };
        parse(&unpacker.unpack(packed)?)
    }
}

impl Unpacker {
    /// Reads what is in front of the first compressed text.
    fn begin(packed: &mut &[u8]) -> Result<Unpacker, Malformed> {
        let [method, flags, ..] = **packed else { return Err(Malformed) };
        packed.advance(2);
        if method & 0x0f != 8 || !(u16::from(method) << 8 | u16::from(flags)).is_multiple_of(31) {
            return Err(Malformed);
        }
        let mut before = Vec::new();
        if flags & HAS_DICTIONARY != 0 {
            if packed.len() < 4 || packed.get_u32() != DICTIONARY {
                return Err(Malformed);
            }
            before = dictionary();
        }
        let at = before.len();
        before.resize(WINDOW, 0);
        Ok(Unpacker { state: DecompressorOxide::new(), window: before, at })
    }

    fn unpack(&mut self, mut packed: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut unpacked = Vec::new();
        loop {
            let (status, read, written) =
                decompress(&mut self.state, packed, &mut self.window, self.at, TINFL_FLAG_HAS_MORE_INPUT);
            unpacked.extend_from_slice(&self.window[self.at..self.at + written]);
            if unpacked.len() > MAX_UNPACKED {
                return Err(Malformed);
            }
            packed = &packed[read..];
            self.at = (self.at + written) % WINDOW;
            match status {
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if packed.is_empty() => return Ok(unpacked),
                _ => return Err(Malformed),
            }
        }
    }
}

/// A number of headers; then the length and text of each name and value.
fn parse(mut unpacked: &[u8]) -> Result<Headers, Malformed> {
    let mut headers = Headers::new();
    for _ in 0..number(&mut unpacked)? {
        let name = text(&mut unpacked)?;
        headers.insert(name.to_lowercase(), text(&mut unpacked)?);
    }
    if unpacked.is_empty() { Ok(headers) } else { Err(Malformed) }
}

fn number(unpacked: &mut &[u8]) -> Result<u32, Malformed> {
    if unpacked.len() < 4 { Err(Malformed) } else { Ok(unpacked.get_u32()) }
}

fn text(unpacked: &mut &[u8]) -> Result<String, Malformed> {
    let length = usize::try_from(number(unpacked)?).unwrap_or(usize::MAX);
    let text = unpacked.get(..length).ok_or(Malformed)?;
    let text = String::from_utf8(text.to_vec()).map_err(|_| Malformed)?;
    unpacked.advance(length);
    Ok(text)
}

/// No headers, as a part of a text that is not really compressed, and needs no dictionary.
pub(super) fn none(has_begun: bool) -> Vec<u8> {
    const ZLIB: [u8; 2] = [0x78, 0x01];
    // A block that is stored as it is: its length, the complement of that, and the number of headers.
    const BLOCK: [u8; 9] = [0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0];
    // An empty one: Go's reader hands out nothing before.
    const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];
    let zlib = if has_begun { &[][..] } else { &ZLIB };
    [zlib, &BLOCK, &FLUSH].concat()
}

impl fmt::Debug for HeaderReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HeaderReader").field("has_begun", &self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of two streams, as zlib compresses them.
    const FIRST: &str = "78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c6061606100a4398b20d198094ade8c0600000000ffff";
    const SECOND: &str = "c2aa19540e2512d60b000000ffff";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn the_dictionary_has_the_checksum_that_clients_send() {
        let (low, high) = dictionary().iter().fold((1_u32, 0_u32), |(low, high), byte| {
            let low = (low + u32::from(*byte)) % 65521;
            (low, (high + low) % 65521)
        });
        assert_eq!(high << 16 | low, DICTIONARY);
    }

    #[test]
    fn headers_of_later_frames_refer_to_earlier_ones() {
        let mut reader = HeaderReader::default();
        for (packed, kind) in [(FIRST, "error"), (SECOND, "data")] {
            let headers = reader.read(&bytes(packed)).unwrap();
            let expected = [("port", "8080"), ("requestid", "0"), ("streamtype", kind)];
            let found: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn headers_that_cannot_be_unpacked_are_malformed() {
        let bomb = |count: u32| {
            // As many equal bytes as wanted, in a few bytes: references to the one before.
            let mut reader = HeaderReader::default();
            let packed = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0; count as usize], 9);
            reader.read(&packed)
        };
        assert_eq!(bomb(50_000_000), Err(Malformed));
        for packed in [&b""[..], b"x", b"\x78\x01", b"\x78\xbb\0\0\0\0", b"\x78\x01\xff\xff", b"\x78\x02"] {
            let read = HeaderReader::default().read(packed);
            assert_eq!(read, Err(Malformed), "{packed:?}");
        }
        for unpacked in
            [&[][..], &[0, 0, 0, 1], &[0xff; 4], &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff], &[0, 0, 0, 0, 0]]
        {
            assert_eq!(parse(unpacked), Err(Malformed), "{unpacked:?}");
        }
        assert_eq!(parse(&[0; 4]), Ok(Headers::new()));
    }

    #[test]
    fn replies_end_with_a_flush_which_clients_in_go_wait_for() {
        for has_begun in [false, true] {
            assert!(none(has_begun).ends_with(&[0, 0, 0, 0xff, 0xff]));
        }
    }
}
