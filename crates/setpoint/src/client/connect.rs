//! Finds the cluster and the credentials: flags, kubeconfig files, or the pod this runs in.

use super::{
    api::Api,
    failure::{ClientError, ClientResult},
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::{Path, PathBuf};

/// Where `setpoint up` puts its kubeconfig.
const OF_SETPOINT: &str = ".setpoint/kubeconfig";

/// The cluster, user and namespace of a client command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ConnectOptions {
    /// The kubeconfig file; by default those of $KUBECONFIG, ~/.kube/config, or .setpoint/kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The cluster of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The user of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The URL of the server
    #[arg(short, long, value_name = "URL")]
    server: Option<String>,
    /// A bearer token
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// The CA of the server's certificate (PEM)
    #[arg(long, value_name = "FILE")]
    certificate_authority: Option<PathBuf>,
    /// Do not verify the server's certificate
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// The user to act as
    #[arg(long = "as", value_name = "USER")]
    impersonate: Option<String>,
    /// A group to act as; may be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    impersonate_groups: Vec<String>,
}

/// A cluster, and the namespace that commands work in.
#[derive(Debug)]
pub(crate) struct ClusterConnection {
    pub(crate) api: Api,
    /// That of the server.
    pub(crate) url: String,
    pub(crate) namespace: String,
    /// Whether the caller has named the namespace.
    pub(crate) is_explicit: bool,
}

impl ConnectOptions {
    pub(crate) async fn connect(&self) -> ClientResult<ClusterConnection> {
        let mut config = self.config().await?;
        if let Some(url) = &self.server {
            config.cluster_url = parse_url(url)?;
        }
        if let Some(token) = &self.token {
            config.auth_info.token = Some(token.clone().into());
        }
        if let Some(path) = &self.certificate_authority {
            if !path.is_file() {
                let path = path.display();
                return Err(ClientError::error(format!(
                    "--certificate-authority {path}: there is no such file"
                )));
            }
            config.root_cert_file = Some(path.clone());
        }
        if self.insecure_skip_tls_verify {
            config.accept_invalid_certs = true;
        }
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !self.impersonate_groups.is_empty() {
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let url = config.cluster_url.to_string();
        Ok(ClusterConnection {
            api: Api::new(config)?,
            url,
            namespace,
            is_explicit: self.namespace.is_some(),
        })
    }

    /// The same credentials for another address of the server.
    pub(crate) async fn connect_to(&self, url: &str) -> ClientResult<ClusterConnection> {
        ConnectOptions { server: Some(url.to_owned()), ..self.clone() }.connect().await
    }

    /// Whether the caller has named the server's URL.
    pub(crate) fn names_server(&self) -> bool {
        self.server.is_some()
    }

    async fn config(&self) -> ClientResult<kube::Config> {
        let files = self.files()?;
        let wanted = KubeConfigOptions {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        if !files.is_empty() {
            let merged = merge(&files)?;
            let has_server = merged.current_context.is_some() || self.context.is_some();
            if has_server || self.server.is_none() {
                let config = kube::Config::from_custom_kubeconfig(merged, &wanted).await;
                return config.map_err(|error| {
                    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                    ClientError::error(format!("kubeconfig {}: {error}", names.join(", ")))
                });
            }
        }
        if let Some(url) = &self.server {
            return Ok(kube::Config::new(parse_url(url)?));
        }
        kube::Config::incluster().map_err(|_| {
            ClientError::error(
                "no cluster is known here: start one with `setpoint up`, or name a kubeconfig with --kubeconfig or $KUBECONFIG",
            )
        })
    }

    /// The kubeconfig files that there are, the first of the usual places that has any.
    fn files(&self) -> ClientResult<Vec<PathBuf>> {
        if let Some(path) = &self.kubeconfig {
            // Kubernetes: /dev/null is a kubeconfig without clusters.
            return if path.exists() {
                Ok(vec![path.clone()])
            } else {
                Err(ClientError::error(format!("stat {}: no such file or directory", path.display())))
            };
        }
        let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let named: Vec<PathBuf> =
            std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
        if !named.is_empty() {
            return Ok(named.into_iter().filter(|path| path.exists()).collect());
        }
        let home = home().map(|home| home.join(".kube/config"));
        let found = home.into_iter().chain([PathBuf::from(OF_SETPOINT)]).find(|path| path.exists());
        Ok(found.into_iter().collect())
    }
}

fn parse_url(url: &str) -> ClientResult<http::Uri> {
    url.parse::<http::Uri>().map_err(|error| ClientError::error(format!("--server {url}: {error}")))
}

fn merge(files: &[PathBuf]) -> ClientResult<Kubeconfig> {
    let read = |path: &Path| {
        Kubeconfig::read_from(path).map_err(|error| {
            ClientError::error(format!("error loading config file \"{}\": {error}", path.display()))
        })
    };
    files.iter().try_fold(Kubeconfig::default(), |merged, path| {
        merged.merge(read(path)?).map_err(|error| ClientError::error(format!("{}: {error}", path.display())))
    })
}

pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|path| !path.as_os_str().is_empty())
}
