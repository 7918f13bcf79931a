//! The server to compare with: hyper and rustls with nothing behind them, sending as many bytes over the same
//! TLS.

use crate::bare_file::BareFile;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use std::{convert::Infallible, net::Ipv4Addr, path::Path, process::ExitCode, sync::Arc};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};
use world::World;

#[derive(Clone)]
struct Bodies {
    object: Bytes,
    list: Bytes,
    file: BareFile,
}

/// Serves with the certificates of a control plane until it is killed; prints its port.
pub(crate) async fn serve(world: &World, folder: &Path, object: usize, list: usize) -> ExitCode {
    let acceptor = TlsAcceptor::from(Arc::new(tls(&folder.join("pki"))));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let bodies = Bodies {
        object: vec![b'x'; object].into(),
        list: vec![b'x'; list].into(),
        file: BareFile::open(world, &folder.join("bare")).unwrap(),
    };
    println!("ready {}", listener.local_addr().unwrap().port());
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (acceptor, bodies) = (acceptor.clone(), bodies.clone());
        let connection = async move {
            socket.set_nodelay(true).unwrap();
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let service = service_fn(move |request| answer(bodies.clone(), request));
            let builder = auto::Builder::new(TokioExecutor::new());
            drop(builder.serve_connection(TokioIo::new(stream), service).await);
        };
        world.spawn("connection", connection).detach();
    }
}

/// TLS as the control plane configures it: HTTP/2 or 1.1, and optional client certificates of its CA.
fn tls(folder: &Path) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let certificate = |name: &str| CertificateDer::from_pem_file(folder.join(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.crt")).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
        .with_single_cert(vec![certificate("server.crt")], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

async fn answer(bodies: Bodies, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = if request.method() == Method::POST {
        let sent = request.into_body().collect().await.unwrap().to_bytes();
        bodies.file.append(sent).await.unwrap();
        bodies.object
    } else if request.uri().path().ends_with("/configmaps") {
        bodies.list
    } else {
        bodies.object
    };
    let mut response = Response::new(Full::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Ok(response)
}
