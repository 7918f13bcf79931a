//! A server behind a real socket, and raw clients.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use server::{
    Audit, Config, Server, TokenFile,
    accept::{self, Limits},
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{PrivateKeyDer, ServerName},
    },
};
use world::{Task, World};

/// Limit on the waiting time of any client.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    client: Arc<ClientConfig>,
    _serving: Task<()>,
}

impl Lab {
    pub(crate) async fn start(world: &World, limits: Limits) -> Lab {
        Lab::start_on(world, limits, Arc::new(store::Memory::new()), None).await
    }

    pub(crate) async fn start_on(
        world: &World,
        limits: Limits,
        store: Arc<dyn store::Store>,
        audit: Option<Audit>,
    ) -> Lab {
        Lab::start_with(world, limits, store, Config { audit, ..Config::default() }).await
    }

    /// With the tokens of two administrators, `admin` and `alice`, beside this configuration.
    pub(crate) async fn start_with(
        world: &World,
        limits: Limits,
        store: Arc<dyn store::Store>,
        config: Config,
    ) -> Lab {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let mut tls = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let scratch = tempfile::tempdir().unwrap();
        let tokens = scratch.path().join("tokens");
        let users = "t0ken,admin,admin,system:masters\nal1ce,alice,alice,system:masters\n";
        std::fs::write(&tokens, users).unwrap();
        let config = Config { tokens: TokenFile::read(&tokens).unwrap(), ..config };
        let server = Server::start(world, store, config).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (serving_world, served) = (world.clone(), server.clone());
        let serving = world.spawn("serving", async move {
            accept::serve(&serving_world, served, listener, Arc::new(tls), limits, std::future::pending())
                .await;
        });
        Lab { world: world.clone(), server, address, client: Arc::new(client), _serving: serving }
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(crate) async fn tls(&self, protocol: &str) -> TlsStream<TcpStream> {
        self.tls_over(self.tcp().await, protocol).await
    }

    pub(crate) async fn tls_over(&self, socket: TcpStream, protocol: &str) -> TlsStream<TcpStream> {
        let mut config = (*self.client).clone();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()
    }

    /// Sends `request` and returns everything that comes back until the server hangs up.
    pub(crate) async fn ask(&self, request: &[u8]) -> String {
        let stream = self.tls("http/1.1").await;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let request = request.to_vec();
        let sending = self.world.spawn("sender", async move {
            // The server may hang up before it has read everything.
            drop(writer.write_all(&request).await);
            drop(writer.flush().await);
            std::future::pending::<()>().await;
        });
        let answer = self.read_all(&mut reader).await;
        drop(sending);
        answer
    }

    /// Reads until the server hangs up.
    pub(crate) async fn read_all(&self, stream: &mut (impl AsyncReadExt + Unpin)) -> String {
        let mut answer = Vec::new();
        let read = self.world.timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        drop(read.expect("the server hangs up"));
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) async fn post(&self, body: &[u8]) -> String {
        let path = "/api/v1/namespaces/default/configmaps";
        self.ask(&request("POST", path, &format!("Content-Length: {}\r\n", body.len()), body)).await
    }

    /// Checks that a well-behaved client is served at once.
    pub(crate) async fn assert_well(&self, during: &str) {
        let before = self.world.now();
        let answer = self.ask(&request("GET", "/api/v1/namespaces/default", "", b"")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{during}: {answer}");
        let took = self.world.now().since(before);
        assert!(took < Duration::from_secs(5), "{during}: it took {took:?}");
    }
}

/// A request of the administrator, the last on its connection.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t0ken\r\nConnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}
