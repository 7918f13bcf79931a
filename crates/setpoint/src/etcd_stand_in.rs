//! Called as `etcd`: reports itself healthy, so that test environments go on to start the API server, which
//! needs no etcd.

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, time::Duration};
use tokio::net::TcpListener;
use world::World;

/// Tells the API server that this is not a real etcd.
pub(crate) const MARK: &str = r#""standIn":"setpoint""#;

/// A health check takes no longer.
const LONGEST: Duration = Duration::from_secs(10);

pub(crate) async fn run(world: &World, arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        crate::up::print_line(
            "etcd of Setpoint: keeps nothing, and answers /health\n  --listen-client-urls URL\n  --unsafe-no-fsync",
        );
        return Ok(());
    }
    let urls =
        flag(arguments, "--listen-client-urls").context("--listen-client-urls says where to listen")?;
    let address = urls.split(',').next().unwrap_or_default().trim_start_matches("http://");
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let mut stopped = Box::pin(crate::up::stopped()?);
    loop {
        let next = Box::pin(listener.accept());
        let socket = match futures::future::select(stopped, next).await {
            futures::future::Either::Left(_) => return Ok(()),
            futures::future::Either::Right((accepted, rest)) => {
                stopped = rest;
                accepted.context("cannot accept a connection")?.0
            }
        };
        let connection =
            http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(socket), service_fn(well));
        let own_world = world.clone();
        let limited = async move { drop(own_world.timeout(LONGEST, connection).await) };
        world.spawn("health check", limited).detach();
    }
}

async fn well(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from(format!(r#"{{"health":"true",{MARK}}}"#)))))
}

fn flag<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument.split('=').next() == Some(name))?;
    match arguments[at].split_once('=') {
        Some((_, value)) => Some(value),
        None => arguments.get(at + 1).map(String::as_str),
    }
}
