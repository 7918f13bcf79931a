//! The service account of a pod: a directory with a token, a CA and a namespace becomes a client.
//!
//! kubelet replaces the token long before it expires, so it is read again: each minute, and when the server
//! has refused it. The CA is read again by the client, too.

use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use kube::{Client, Config, client::ClientBuilder};
use std::{
    env, fs, io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tower::util::{MapRequestLayer, MapResponseLayer};
use world::{Moment, World};

/// Kubernetes: where kubelet mounts the service account of a pod.
const DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Kubernetes: the address of the API server, in the environment of every container.
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";
/// client-go: a token is read again after a minute.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// A service account whose files are in a directory, and the API server that it is for.
///
/// ```no_run
/// # async fn example() -> Result<(), operator::Error> {
/// use operator::{Manager, service_account::ServiceAccount};
///
/// // A token for another cluster, projected into a volume.
/// let account = ServiceAccount::mounted("/var/run/secrets/other", "other.example.com", 443);
/// let manager = Manager::connect_as("copier", &account)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    directory: PathBuf,
    host: String,
    port: u16,
}

/// Why there is no client for a service account.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable of the environment is missing or wrong: this process is not in a pod.
    #[error("the environment variable {variable} is not that of a pod")]
    NotInPod {
        /// Its name.
        variable: &'static str,
    },
    /// A file of the service account cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address of the API server is none.
    #[error("{host:?} is not a host")]
    Host {
        /// What was given.
        host: String,
        /// Why.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The CA cannot be used.
    #[error("the client of the service account cannot be made")]
    Client(#[source] kube::Error),
}

impl ServiceAccount {
    /// The one of the pod in which this process runs.
    pub fn of_pod() -> Result<ServiceAccount, Error> {
        ServiceAccount::of_environment(|variable| env::var(variable).ok())
    }

    fn of_environment(read: impl Fn(&str) -> Option<String>) -> Result<ServiceAccount, Error> {
        let read = |variable| read(variable).ok_or(Error::NotInPod { variable });
        let port = read(PORT)?.parse().map_err(|_| Error::NotInPod { variable: PORT })?;
        Ok(ServiceAccount::mounted(DIRECTORY, &read(HOST)?, port))
    }

    /// The one whose files `token`, `ca.crt` and `namespace` are in this directory. The API server is reached over
    /// TLS at `host`, a name or an address, and `port`.
    pub fn mounted(directory: impl Into<PathBuf>, host: &str, port: u16) -> ServiceAccount {
        ServiceAccount { directory: directory.into(), host: host.to_owned(), port }
    }

    /// A client with its token. Its default namespace is that of the service account.
    pub fn client(&self, world: &World) -> Result<Client, Error> {
        let token = Arc::new(TokenFile::open(world, self.directory.join("token"))?);
        let authority = self.directory.join("ca.crt");
        // So that the error names the file.
        read(&authority)?;
        let mut config = Config::new(self.url()?);
        config.root_cert_file = Some(authority);
        config.default_namespace = read(&self.directory.join("namespace"))?.trim().to_owned();
        config.apply_debug_overrides();
        let refused = Arc::clone(&token);
        let authorize = MapRequestLayer::new(move |mut request: Request<_>| {
            request.headers_mut().insert(AUTHORIZATION, token.header());
            request
        });
        let notice = MapResponseLayer::new(move |response: Response<_>| {
            if response.status() == StatusCode::UNAUTHORIZED {
                refused.set_refused();
            }
            response
        });
        let builder = ClientBuilder::try_from(config).map_err(Error::Client)?;
        Ok(builder.with_layer(&authorize).with_layer(&notice).build())
    }

    /// The host and port of the API server, as metrics show them.
    pub(crate) fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, self.port).to_string(),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }

    fn url(&self) -> Result<http::Uri, Error> {
        let parsed = format!("https://{}", self.authority()).parse();
        parsed.map_err(|source| Error::Host { host: self.host.clone(), source })
    }
}

/// A token that is read again from its file.
#[derive(Debug)]
struct TokenFile {
    world: World,
    path: PathBuf,
    token: Mutex<ReadToken>,
}

#[derive(Debug)]
struct ReadToken {
    header: HeaderValue,
    /// The time of the last attempt.
    read: Moment,
    is_refused: bool,
}

impl TokenFile {
    fn open(world: &World, path: PathBuf) -> Result<TokenFile, Error> {
        let token = ReadToken { header: bearer(&path)?, read: world.now(), is_refused: false };
        Ok(TokenFile { world: world.clone(), path, token: Mutex::new(token) })
    }

    /// The header with the token, which is read again if it is old or was refused.
    fn header(&self) -> HeaderValue {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.world.now();
        if token.is_refused || now.since(token.read) >= READ_AGAIN {
            match bearer(&self.path) {
                Ok(header) => token.header = header,
                // client-go: some remove the file once the process has read it. The server decides.
                Err(problem) => tracing::debug!(%problem, "the token cannot be read again"),
            }
            (token.read, token.is_refused) = (now, false);
        }
        token.header.clone()
    }

    fn set_refused(&self) {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).is_refused = true;
    }
}

fn bearer(path: &Path) -> Result<HeaderValue, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let text = read(path)?;
    let token = text.trim();
    if token.is_empty() {
        return Err(unreadable(io::Error::other("the file is empty")));
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|error| unreadable(io::Error::other(error)))?;
    header.set_sensitive(true);
    Ok(header)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_again_each_minute_and_when_it_was_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("token");
        let steps = [
            // What the file has, how many seconds pass, whether the server refuses the token, and what is sent.
            (Some("one\n"), 0, false, "Bearer one"),
            (Some("two"), 59, false, "Bearer one"),
            (Some("two"), 1, false, "Bearer two"),
            (Some("three"), 0, false, "Bearer two"),
            (Some("three"), 0, true, "Bearer three"),
            (None, 60, false, "Bearer three"),
            (Some(""), 0, true, "Bearer three"),
            (Some("four\u{7}"), 60, false, "Bearer three"),
            (Some("five"), 60, false, "Bearer five"),
        ];
        fs::write(&path, "one\n").unwrap();
        let run = world::simulate(1, |world| async move {
            let token = TokenFile::open(&world, path.clone()).unwrap();
            for (text, seconds, is_refused, expected) in steps {
                match text {
                    Some(text) => fs::write(&path, text).unwrap(),
                    None => fs::remove_file(&path).unwrap(),
                }
                world.sleep(Duration::from_secs(seconds)).await;
                if is_refused {
                    token.set_refused();
                }
                assert_eq!(token.header(), expected, "{text:?}");
                assert!(token.header().is_sensitive(), "it is not in logs");
            }
        });
        run.unwrap();
    }

    #[test]
    fn each_missing_file_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let run = world::simulate(1, |world| async move {
            for name in ["token", "ca.crt", "namespace"] {
                let account = ServiceAccount::mounted(scratch.path(), "10.0.0.1", 443);
                let error = account.client(&world).err().unwrap();
                assert_eq!(
                    error.to_string(),
                    format!("{} cannot be read", scratch.path().join(name).display())
                );
                fs::write(scratch.path().join(name), "x").unwrap();
            }
        });
        run.unwrap();
    }

    #[test]
    fn the_service_account_of_a_pod_is_at_the_usual_place() {
        let of = |environment: &[(&str, &str)]| {
            let read = |name: &str| {
                let found = environment.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            ServiceAccount::of_environment(read).map_err(|error| error.to_string())
        };
        let pod = [(HOST, "10.96.0.1"), (PORT, "443")];
        let usual = "/var/run/secrets/kubernetes.io/serviceaccount";
        assert_eq!(of(&pod), Ok(ServiceAccount::mounted(usual, "10.96.0.1", 443)));
        let missing =
            |variable: &str| Err(format!("the environment variable {variable} is not that of a pod"));
        assert_eq!(of(&pod[..1]), missing(PORT));
        assert_eq!(of(&pod[1..]), missing(HOST));
        assert_eq!(of(&[pod[0], (PORT, "https")]), missing(PORT));
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for (host, expected) in [
            ("10.0.0.1", Some("https://10.0.0.1:443/")),
            ("fd00::1", Some("https://[fd00::1]:443/")),
            ("kubernetes.default.svc", Some("https://kubernetes.default.svc:443/")),
            ("no host", None),
        ] {
            let url = ServiceAccount::mounted("/", host, 443).url();
            assert_eq!(url.ok().map(|url| url.to_string()).as_deref(), expected, "{host}");
        }
    }
}
