//! Certificates that a webhook's may be signed with, as PEM in base64.

use crate::built_in::core::secret::decode_base64;

const BEGIN: &str = "-----BEGIN ";
const SEQUENCE: u8 = 0x30;

/// What is wrong with them. No bundle is a good one: it stands for those of the machine.
pub(crate) fn problem(bundle: &str) -> Option<String> {
    if bundle.is_empty() {
        return None;
    }
    let pem = decode_base64(bundle);
    let pem = String::from_utf8_lossy(&pem);
    let blocks = || pem.split(BEGIN).skip(1).filter_map(block);
    if blocks().any(|(label, der)| label == "CERTIFICATE" && is_certificate(&der)) {
        return None;
    }
    let problem = if blocks().any(|(label, _)| label == "CERTIFICATE") {
        "failed to parse certificate: x509: malformed certificate"
    } else if blocks().next().is_none() {
        "unable to parse bytes as PEM block"
    } else {
        "no valid certificate authority data seen"
    };
    Some(format!("unable to load root certificates: {problem}"))
}

/// What the blocks of a PEM file are called.
pub(crate) fn labels(pem: &[u8]) -> Vec<String> {
    let pem = String::from_utf8_lossy(pem);
    pem.split(BEGIN).skip(1).filter_map(block).map(|(label, _)| label.to_owned()).collect()
}

/// What is wrong with certificates that somebody was given.
pub(crate) fn chain_problem(chain: &str) -> Option<String> {
    if chain.is_empty() {
        return None;
    }
    let pem = decode_base64(chain);
    let pem = String::from_utf8_lossy(&pem);
    let blocks: Vec<_> = pem.split(BEGIN).skip(1).filter_map(block).collect();
    let of_block = |(label, der): &(&str, Vec<u8>)| match *label {
        "CERTIFICATE" if is_certificate(der) => None,
        "CERTIFICATE" => Some("x509: malformed certificate".to_owned()),
        other => Some(format!("only CERTIFICATE PEM blocks are allowed, found {}", api::go::quote(other))),
    };
    match blocks.is_empty() {
        true => Some("must contain at least one CERTIFICATE PEM block".to_owned()),
        false => blocks.iter().find_map(of_block),
    }
}

/// The label and the bytes of a block whose beginning is cut off.
fn block(text: &str) -> Option<(&str, Vec<u8>)> {
    let (label, rest) = text.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    Some((label, decode_base64(&body)))
}

/// It looks like one from outside: a sequence that ends where its length says.
fn is_certificate(der: &[u8]) -> bool {
    let [SEQUENCE, length, rest @ ..] = der else { return false };
    let digits = usize::from(length & 0x7f);
    if length & 0x80 == 0 {
        return rest.len() == digits;
    }
    let Some((length, content)) = rest.split_at_checked(digits) else { return false };
    let length = length.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
    digits <= 4 && content.len() == length && content.first() == Some(&SEQUENCE)
}
