//! What is answered to which request, and once over a real socket.

use super::*;
use futures::FutureExt;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn probe() -> Probe {
    let metrics = Metrics::default();
    metrics.set_leader("shop", true);
    Probe::new(metrics)
        .live("good", || Ok(()))
        .live("lame", || Err("it limps".into()))
        .ready("good", || Ok(()))
}

#[test]
fn checks_are_told_as_controller_runtime_tells_them() {
    let no_match =
        "warn: some health checks cannot be excluded: no matches for \"ghost\"\nhealthz check passed\n";
    for (path, code, body) in [
        ("/readyz", 200, "ok"),
        ("/readyz/", 200, "ok"),
        ("/readyz?verbose", 200, "[+]good ok\nhealthz check passed\n"),
        ("/readyz?verbose=1&exclude=ghost", 200, &format!("[+]good ok\n{no_match}")),
        ("/readyz/good", 200, "ok"),
        ("/readyz/ghost", 404, "404 page not found\n"),
        ("/healthz", 500, "[+]good ok\n[-]lame failed: reason withheld\nhealthz check failed\n"),
        ("/healthz?exclude=lame", 200, "ok"),
        ("/healthz?exclude=lame&verbose", 200, "[+]good ok\n[+]lame excluded: ok\nhealthz check passed\n"),
        ("/healthz/lame", 500, "internal server error: it limps\n"),
        ("/healthzz", 404, "404 page not found\n"),
        ("/", 404, "404 page not found\n"),
    ] {
        let answer = probe().answer(&Request::get(path).body(()).unwrap());
        let found = answer.status();
        let text = answer.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        assert_eq!((found.as_u16(), std::str::from_utf8(&text).unwrap()), (code, body), "{path}");
    }
    let bare = Probe::new(Metrics::default());
    for path in ["/healthz", "/healthz/ping", "/readyz?verbose"] {
        assert_eq!(bare.answer(&Request::get(path).body(()).unwrap()).status(), 200, "{path}");
    }
    assert_eq!(bare.answer(&Request::post("/healthz").body(()).unwrap()).status(), 405);
}

#[test]
fn a_scrape_over_a_socket_gets_the_page() {
    let page = world::run(|world| async move {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let _serving = world.spawn("probes", probe().serve(world.clone(), listener));
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut page = String::new();
        socket.read_to_string(&mut page).await.unwrap();
        page
    })
    .unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4;"), "{page}");
    assert!(page.ends_with("\nleader_election_master_status{name=\"shop\"} 1\n"), "{page}");
}
