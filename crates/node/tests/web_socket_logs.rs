//! Logs over a WebSocket, through the server and in virtual time.

use crate::{
    kubelet::running,
    rig,
    web_socket_client::{Session, ask, upgrade},
};
use bytes::Bytes;
use http::header;

const BINARY: u8 = 0x82;
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

#[test]
fn a_log_comes_over_a_web_socket() {
    testkit::run(|cluster| async move {
        let _nodes = rig::start(&cluster, 1);
        running(&cluster).await;
        for (protocol, first, whole) in [
            ("binary.k8s.io", BINARY, "one\ntwo\n"),
            ("v9.example.com, binary.k8s.io", BINARY, "one\ntwo\n"),
            ("base64.binary.k8s.io", TEXT, "b25lCnR3bwo="),
        ] {
            let response = ask(&cluster, "admin", &["system:masters"], upgrade("web/log", protocol)).await;
            let agreed = response.headers()[header::SEC_WEBSOCKET_PROTOCOL].to_str().unwrap().to_owned();
            assert!(protocol.ends_with(&agreed), "{protocol}: {agreed}");
            let mut session = Session::of(response).await;
            assert_eq!(session.next().await.unwrap(), (first, Bytes::new()), "an empty message comes first");
            assert_eq!(session.next().await.unwrap(), (first, Bytes::from(whole)));
            assert_eq!(session.next().await.unwrap().0, CLOSE);
        }
        let refused =
            ask(&cluster, "admin", &["system:masters"], upgrade("web/log", "v4.channel.k8s.io")).await;
        assert_eq!(refused.status(), 403);
        let absent = ask(&cluster, "admin", &["system:masters"], upgrade("none/log", "binary.k8s.io")).await;
        assert_eq!(absent.status(), 404);
    });
}
