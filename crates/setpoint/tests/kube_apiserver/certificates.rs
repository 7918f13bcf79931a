//! The serving certificate: from files, from the certificate folder, or new; and the CAs of clients. The clients of these
//! tests verify the server.

use super::{ApiServer, Authority, client, file, program, run, start, user};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

const TOKEN: &str = "secret";
const BOB: Result<&str, &str> = Ok("bob");

fn tokens(directory: &Path) -> String {
    let tokens = file(directory, "tokens.csv", &format!("{TOKEN},bob,1,\"system:masters\"\n"));
    format!("--token-auth-file={}", tokens.display())
}

/// A CA, and a certificate of it for 127.0.0.1 with its key, as PEM.
struct Serving {
    ca: String,
    certificate: String,
    key: String,
}

impl Serving {
    fn new() -> Serving {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&ca_key).unwrap().pem();
        let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = server.signed_by(&key, &Issuer::new(params, ca_key)).unwrap().pem();
        Serving { ca, certificate, key: key.serialize_pem() }
    }
}

/// The last certificate of a PEM text.
fn last_certificate(pem: &str) -> Vec<u8> {
    let begin = pem.rfind("-----BEGIN CERTIFICATE-----").expect("there is a certificate");
    let lines = pem[begin..].lines().skip(1).take_while(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}

/// A client that accepts only a server with a certificate of this CA, and for 127.0.0.1.
fn verifying(server: &ApiServer, ca: &str) -> Client {
    let url = server.url.replace("0.0.0.0", "127.0.0.1");
    let mut config = Config::new(url.parse().unwrap());
    config.root_cert = Some(vec![last_certificate(ca)]);
    config.auth_info.token = Some(TOKEN.to_owned().into());
    Client::try_from(config).unwrap()
}

async fn user_of(server: &ApiServer, ca: &str) -> Result<String, String> {
    user(verifying(server, ca)).await
}

fn words(user: &Result<String, String>) -> Result<&str, &str> {
    user.as_deref().map_err(String::as_str)
}

#[test]
fn a_new_certificate_is_kept_in_the_certificate_folder_and_used_again() {
    let scratch = tempfile::tempdir().unwrap();
    let tokens = tokens(scratch.path());
    let folder = scratch.path().join("certificates");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let first = start(scratch.path(), &[&tokens]);
    let kept = (read("apiserver.crt"), read("apiserver.key"));
    run(async { assert_eq!(words(&user_of(&first, &kept.0).await), BOB) });
    let mode = fs::metadata(folder.join("apiserver.key")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    drop(first);
    let second = start(scratch.path(), &[&tokens]);
    assert_eq!((read("apiserver.crt"), read("apiserver.key")), kept);
    run(async { assert_eq!(words(&user_of(&second, &kept.0).await), BOB) });
}

#[test]
fn the_certificate_of_the_flags_is_served_and_read_again() {
    let scratch = tempfile::tempdir().unwrap();
    let (old, new) = (Serving::new(), Serving::new());
    let certificate = file(scratch.path(), "tls.crt", &old.certificate);
    let key = file(scratch.path(), "tls.key", &old.key);
    let certificate = format!("--tls-cert-file={}", certificate.display());
    let key = format!("--tls-private-key-file={}", key.display());
    let server = start(scratch.path(), &[&tokens(scratch.path()), &certificate, &key]);
    assert!(!scratch.path().join("certificates/apiserver.crt").exists(), "none was made");
    run(async {
        assert_eq!(words(&user_of(&server, &old.ca).await), BOB);
        assert!(user_of(&server, &new.ca).await.is_err(), "the client verifies the server");
        file(scratch.path(), "tls.key", &new.key);
        assert_eq!(words(&user_of(&server, &old.ca).await), BOB, "a key alone is not enough");
        file(scratch.path(), "tls.crt", &new.certificate);
        assert_eq!(words(&user_of(&server, &new.ca).await), BOB);
    });
    for (arguments, expected) in [
        (&[certificate.as_str()][..], "--tls-cert-file and --tls-private-key-file must be given together"),
        (&[&key], "--tls-cert-file and --tls-private-key-file must be given together"),
        (&[&certificate, &key.replace("tls.key", "tls.crt")], "there is no private key in PEM"),
    ] {
        let output = program(scratch.path()).arg("--secure-port=0").args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected) && !output.status.success(), "{arguments:?}: {said}");
    }
}

#[test]
fn a_server_on_all_addresses_is_verified_at_one_of_them() {
    let scratch = tempfile::tempdir().unwrap();
    let server = start(scratch.path(), &[&tokens(scratch.path()), "--bind-address=0.0.0.0"]);
    assert!(server.url.starts_with("https://0.0.0.0:"), "{}", server.url);
    let ca = fs::read_to_string(scratch.path().join("certificates/apiserver.crt")).unwrap();
    run(async { assert_eq!(words(&user_of(&server, &ca).await), BOB) });
}

#[test]
fn clients_have_certificates_of_any_of_several_cas() {
    let scratch = tempfile::tempdir().unwrap();
    let [ann, bob, cid, eve] = ["ann", "bob", "cid", "eve"].map(Authority::new);
    let one = file(scratch.path(), "one.crt", &ann.ca);
    let two = file(scratch.path(), "two.crt", &format!("{}{}", bob.ca, cid.ca));
    let flags = [one, two].map(|path| format!("--client-ca-file={}", path.display()));
    let server = start(scratch.path(), &[&flags[0], &flags[1]]);
    run(async {
        for (name, authority) in [("ann", &ann), ("bob", &bob), ("cid", &cid)] {
            let user = user(client(&server, Some(&authority.identity), None)).await;
            assert_eq!(words(&user), Ok(name));
        }
        assert!(user(client(&server, Some(&eve.identity), None)).await.is_err());
    });
}
