//! The page on several servers with a real etcd; `cargo xtask test` finds or fetches it and sets `SETPOINT_ETCD` to it.

use super::terminal::Terminal;
use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
};

/// Where the page has its etcd.
const ADDRESS: &str = "127.0.0.1:2379";

/// A port that was free just now: etcd cannot choose one itself.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn several_servers() {
    let program = std::env::var_os("SETPOINT_ETCD").expect("SETPOINT_ETCD names no etcd");
    let data = tempfile::tempdir().unwrap();
    let [client, peer] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(data.path().join("etcd")).arg("--unsafe-no-fsync");
    for (flag, address) in [
        ("--listen-client-urls", &client),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
    ] {
        command.args([flag, &format!("http://{address}")]);
    }
    command.args(["--initial-cluster", &format!("default=http://{peer}"), "--log-outputs", "stdout"]);
    let mut etcd = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(etcd.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready to serve client requests") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "etcd ended before it was ready");
    }
    let mut terminal = Terminal::new(&[]);
    terminal.serve_at(ADDRESS, etcd, &client, output);
    terminal.run("docs/guide/several-servers.md");
}
