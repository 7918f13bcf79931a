//! A store at its quota or on a full disk: errors for clients, and what still works.

use crate::client::{send, send_raw, send_with};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use server::{Config, Server};
use std::{path::PathBuf, sync::Arc};
use store::{
    Answer, Batch, Bytes, Error, Feed, Limits, Memory, Page, Range, Read, ReadStore, Revision, Store,
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, size: usize) -> String {
    json!({"metadata": {"name": name}, "data": {"k": "x".repeat(size)}}).to_string()
}

#[test]
fn a_full_store_rejects_creates_and_allows_reads_and_deletes() {
    world::simulate(1, |world| async move {
        let limits = Limits { live_bytes: 1 << 20, ..Limits::default() };
        let store = Arc::new(Memory::with_limits(limits));
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let mut made = 0;
        let refused = loop {
            let (code, status) = send(&server, "POST", MAPS, map(&format!("m{made}"), 50_000)).await;
            if code != 201 {
                break (code, status);
            }
            made += 1;
            assert!(made < 30, "it is full before long");
        };
        // Kubernetes: the error when etcd is full.
        assert_eq!(refused.0, 500);
        assert_eq!(refused.1["message"], "etcdserver: mvcc: database space exceeded");
        assert!(refused.1.get("reason").is_none(), "{:?}", refused.1);
        assert_eq!(send(&server, "GET", &format!("{MAPS}/m0"), "").await.0, 200);
        // An object with finalizers can still get its deletionTimestamp.
        let finalizer = json!({"metadata": {"finalizers": ["example.com/f"]}}).to_string();
        let (path, merge) = (format!("{MAPS}/m0"), "application/merge-patch+json");
        assert_eq!(send_with(&server, "PATCH", &path, merge, finalizer).await.0, 200);
        assert_eq!(send(&server, "DELETE", &format!("{MAPS}/m0"), "").await.0, 200);
        assert_eq!(send(&server, "DELETE", &format!("{MAPS}/m1"), "").await.0, 200);
        assert_eq!(send(&server, "POST", MAPS, map("again", 40_000)).await.0, 201);
    })
    .unwrap();
}

#[test]
fn a_continue_token_of_the_future_is_expired() {
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(Memory::new()), Config::default()).await.unwrap();
        let token = r#"{"v":"meta.k8s.io/v1","rv":999999999,"start":"a"}"#;
        let path = format!("{MAPS}?limit=1&continue={}", URL_SAFE_NO_PAD.encode(token));
        let (code, status) = send(&server, "GET", &path, "").await;
        assert_eq!((code, &status["reason"]), (410, &json!("Expired")), "{status}");
    })
    .unwrap();
}

/// A store on a full disk.
#[derive(Debug)]
struct NoRoom(Memory);

impl ReadStore for NoRoom {
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        self.0.get(key, at)
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        self.0.range(range)
    }

    fn count(&self, range: Range) -> Answer<'_, u64> {
        self.0.count(range)
    }

    fn revision(&self) -> Answer<'_, Revision> {
        self.0.revision()
    }

    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed> {
        self.0.feed(prefix, since)
    }

    fn is_writable(&self) -> bool {
        false
    }
}

impl Store for NoRoom {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        let is_client =
            batch.writes().iter().any(|write| write.key.starts_with(b"/registry/configmaps/default/m"));
        if !is_client {
            return self.0.commit(batch);
        }
        let file = PathBuf::from("/var/lib/secret-place/00000000000000000001.log");
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Box::pin(std::future::ready(Err(Error::Full { file, source })))
    }

    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        self.0.compact(floor)
    }

    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        self.0.backup(file)
    }
}

#[test]
fn a_full_disk_fails_readyz_and_errors_name_no_file() {
    world::simulate(1, |world| async move {
        let server = Server::start(&world, Arc::new(NoRoom(Memory::new())), Config::default()).await.unwrap();
        let (code, status) = send_raw(&server, "POST", MAPS, map("m", 10)).await;
        let text = String::from_utf8(status.to_vec()).unwrap();
        assert_eq!(code, 500, "{text}");
        assert!(!text.contains("secret-place"), "{text}");
        let (code, text) = send_raw(&server, "GET", "/readyz", "").await;
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert_eq!(code, 500, "{text}");
        assert!(text.contains("[-]etcd failed"), "{text}");
        // livez is fine: a restart would not help.
        assert_eq!(send_raw(&server, "GET", "/livez", "").await.0, 200);
        assert_eq!(send_raw(&server, "GET", "/readyz/etcd", "").await.0, 500);
        assert_eq!(send_raw(&server, "GET", "/livez/etcd", "").await.0, 200);
    })
    .unwrap();
}
