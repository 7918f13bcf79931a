//! Certificates over the years: made, renewed, kept; a CA of the user's own.

use super::*;

const LISTEN: [IpAddr; 1] = [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))];
const MORE: [IpAddr; 2] = [LISTEN[0], IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))];

/// The files that differ between two sets.
fn changed(before: &Certificates, after: &Certificates) -> Vec<&'static str> {
    let texts = |it: &Certificates| {
        [&it.ca, &it.ca_key, &it.server, &it.server_key, &it.admin, &it.admin_key].map(String::clone)
    };
    let pairs = FILES.into_iter().zip(texts(before).into_iter().zip(texts(after)));
    pairs.filter(|(_, (before, after))| before != after).map(|(name, _)| name).collect()
}

#[test]
fn certificates_are_renewed_before_they_run_out() {
    let scratch = tempfile::tempdir().unwrap();
    let mut now = 1_767_225_600;
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    let mut before = Certificates::load_or_make(at(now), scratch.path(), &LISTEN).unwrap();
    for (years, addresses, expected) in [
        (0, &LISTEN[..], &[][..]),
        (3, &LISTEN, &[]),
        (0, &MORE, &["server.crt"]),
        (0, &LISTEN, &[]),
        (2, &MORE, &["admin.crt"]),
        (4, &MORE, &["server.crt"]),
        (5, &MORE, &["server.crt", "admin.crt"]),
        (2, &MORE, &FILES),
    ] {
        now += years * YEAR_SECONDS;
        let after = Certificates::load_or_make(at(now), scratch.path(), addresses).unwrap();
        assert_eq!(changed(&before, &after), expected, "after {years} years");
        after.server_config().unwrap();
        before = after;
    }
}

#[test]
fn a_ca_that_cannot_be_read_is_not_replaced() {
    let now = Timestamp::from_second(1_767_225_600).unwrap();
    type Spoil = fn(&Path);
    let cases: [(&str, Spoil); 4] = [
        ("no certificate", |ca| fs::write(ca, "-----BEGIN NOTHING-----").unwrap()),
        ("no text", |ca| fs::write(ca, [0xff]).unwrap()),
        ("not there", |ca| fs::remove_file(ca).unwrap()),
        ("no file", |ca| {
            fs::remove_file(ca).unwrap();
            fs::create_dir(ca).unwrap();
        }),
    ];
    for (name, spoil) in cases {
        let scratch = tempfile::tempdir().unwrap();
        Certificates::load_or_make(now, scratch.path(), &LISTEN).unwrap();
        let key = fs::read(scratch.path().join("ca.key")).unwrap();
        spoil(&scratch.path().join("ca.crt"));
        assert!(Certificates::load_or_make(now, scratch.path(), &LISTEN).is_err(), "{name}");
        assert_eq!(fs::read(scratch.path().join("ca.key")).unwrap(), key, "{name}");
    }
}

#[test]
fn a_ca_of_the_user_signs_and_is_never_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let (certificate, key) = (scratch.path().join("ca.crt"), scratch.path().join("ca.key"));
    let mut now = 1_767_225_600;
    let load =
        |now: i64| Certificates::load_or_make(Timestamp::from_second(now).unwrap(), scratch.path(), &LISTEN);
    let begun = Timestamp::from_second(now).unwrap();
    let mut theirs = params(begun, "their CA", &["Acme", "IT"], 2).unwrap();
    theirs.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let their_key = KeyPair::generate().unwrap();
    let theirs = theirs.self_signed(&their_key).unwrap().pem();
    fs::write(&certificate, &theirs).unwrap();
    let refused = format!("{:#}", load(now).unwrap_err());
    assert!(refused.contains("ca.key is missing: put the key of the CA there"), "{refused}");
    fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let refused = format!("{:#}", load(now).unwrap_err());
    assert!(refused.contains("ca.key is not the key of"), "{refused}");
    fs::write(&key, their_key.serialize_pem()).unwrap();
    for _ in 0..2 {
        let certificates = load(now).unwrap();
        assert_eq!((&certificates.ca, &certificates.ca_key), (&theirs, &their_key.serialize_pem()));
        let der = CertificateDer::from_pem_slice(certificates.server.as_bytes()).unwrap();
        let (_, server) = X509Certificate::from_der(&der).unwrap();
        let der = CertificateDer::from_pem_slice(theirs.as_bytes()).unwrap();
        let (_, ca) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(server.issuer(), ca.subject());
        server.verify_signature(Some(ca.public_key())).unwrap();
        now += YEAR_SECONDS;
    }
}

#[test]
fn an_incompletely_written_set_is_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let now = Timestamp::from_second(1_767_225_600).unwrap();
    let before = Certificates::load_or_make(now, scratch.path(), &LISTEN).unwrap();
    fs::remove_file(scratch.path().join("admin.key")).unwrap();
    let after = Certificates::load_or_make(now, scratch.path(), &LISTEN).unwrap();
    assert_eq!(changed(&before, &after), FILES);
}
