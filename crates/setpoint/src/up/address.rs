//! The address at which the cluster reaches this server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// An address reserved for documentation: no packet is sent there, only the route is looked up.
const ELSEWHERE: &str = "192.0.2.1:9";

/// The given address, or the one listened on, or that of this machine; `None` without a network.
// Kubernetes: a server that listens everywhere, or on loopback only, advertises the machine's address.
pub(crate) fn advertised(given: Option<IpAddr>, listening: SocketAddr) -> Option<SocketAddr> {
    choose(given, listening, of_machine)
}

fn choose(
    given: Option<IpAddr>,
    listening: SocketAddr,
    of_machine: impl FnOnce() -> Option<IpAddr>,
) -> Option<SocketAddr> {
    // Kubernetes: 0.0.0.0 is no address to advertise.
    let given = given.filter(|ip| !ip.is_unspecified());
    let own = Some(listening.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback());
    let ip = given.or(own).or_else(of_machine)?;
    Some(SocketAddr::new(ip, listening.port()))
}

/// Where clients on this machine reach the server: one that listens everywhere has no such address in its certificate.
pub(crate) fn local(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// The address from which this machine would reach others. Nothing is sent.
fn of_machine() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(ELSEWHERE).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    Some(ip).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_reached_on_loopback() {
        for (listening, expected) in [
            ("0.0.0.0:6443", "127.0.0.1:6443"),
            ("[::]:6443", "[::1]:6443"),
            ("192.0.2.7:6443", "192.0.2.7:6443"),
        ] {
            assert_eq!(local(listening.parse().unwrap()), expected.parse().unwrap());
        }
    }

    #[test]
    fn the_given_address_has_precedence() {
        let [given, anywhere, machine]: [Option<IpAddr>; 3] =
            ["192.0.2.9", "0.0.0.0", "198.51.100.3"].map(|text| text.parse().ok());
        for (given, listening, machine, expected) in [
            (given, "127.0.0.1:6443", machine, Some("192.0.2.9:6443")),
            (given, "192.0.2.7:6443", machine, Some("192.0.2.9:6443")),
            (None, "192.0.2.7:7443", machine, Some("192.0.2.7:7443")),
            (anywhere, "192.0.2.7:7443", machine, Some("192.0.2.7:7443")),
            (None, "127.0.0.1:6443", machine, Some("198.51.100.3:6443")),
            (None, "0.0.0.0:6443", machine, Some("198.51.100.3:6443")),
            (None, "127.0.0.1:6443", None, None),
        ] {
            let found = choose(given, listening.parse().unwrap(), || machine);
            assert_eq!(found, expected.map(|it| it.parse().unwrap()), "{given:?} {listening}");
        }
    }
}
