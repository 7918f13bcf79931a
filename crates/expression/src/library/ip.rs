//! `ip('10.0.0.1')` and its functions.

use std::net::IpAddr;

use super::{
    Function, Library, Outcome, Overload,
    address::{is_mapped, parse, width},
    charge,
};
use crate::{error::Error, ty::Type, value::Opaque, value::Value};

pub(super) const IP: Type = Type::Opaque("net.IP");

#[derive(Debug)]
pub(super) struct Ip(pub IpAddr);

impl Opaque for Ip {
    fn ty(&self) -> Type {
        IP
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        (other as &dyn std::any::Any).downcast_ref::<Ip>().is_some_and(|other| self.0 == other.0)
    }

    fn size(&self) -> Option<u64> {
        Some(u64::from(width(self.0)) / 8)
    }
}

pub(crate) fn library() -> Library {
    let parsing = |id, result, body| {
        Overload::global(id, vec![Type::String], result, body)
            .costs(charge::walk)
            .estimated(charge::walk_estimate)
    };
    let asking =
        |name, id, result, body| Function::new(name, vec![Overload::member(id, vec![IP], result, body)]);
    let canonical = Overload::global("ip_is_canonical", vec![Type::String], Type::Bool, is_canonical)
        .costs(charge::walk_twice)
        .estimated(charge::walk_twice_estimate);
    Library {
        types: vec![IP],
        functions: vec![
            Function::new("ip", vec![parsing("string_to_ip", IP, ip)]),
            Function::new("isIP", vec![parsing("is_ip", Type::Bool, is_ip)]),
            Function::new("ip.isCanonical", vec![canonical]),
            asking("family", "ip_family", Type::Int, family),
            asking("isUnspecified", "ip_is_unspecified", Type::Bool, is_unspecified),
            asking("isLoopback", "ip_is_loopback", Type::Bool, is_loopback),
            asking("isLinkLocalMulticast", "ip_is_link_local_multicast", Type::Bool, is_link_local_multicast),
            asking("isLinkLocalUnicast", "ip_is_link_local_unicast", Type::Bool, is_link_local_unicast),
            asking("isGlobalUnicast", "ip_is_global_unicast", Type::Bool, is_global_unicast),
            Function::new("string", vec![Overload::global("ip_to_string", vec![IP], Type::String, string)]),
        ],
        ..Library::default()
    }
}

/// An address without a zone that is not an IPv4-mapped IPv6 address.
pub(super) fn read(text: &str) -> Result<IpAddr, Error> {
    let quoted = || api::go::quote(text);
    let parsed = parse(text).map_err(|problem| {
        Error::new(format!("IP Address {} parse error during conversion from string: {problem}", quoted()))
    })?;
    if parsed.zone {
        return Err(Error::new(format!("IP address {} with zone value is not allowed", quoted())));
    }
    if is_mapped(parsed.address) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quoted())));
    }
    Ok(parsed.address)
}

fn text<'v>(args: &'v [Value<'_>]) -> Result<&'v str, Error> {
    args.first().and_then(Value::as_str).ok_or_else(Error::no_such_overload)
}

fn address(args: &[Value<'_>]) -> Result<IpAddr, Error> {
    let ip = args.first().and_then(Value::as_opaque::<Ip>);
    ip.map(|ip| ip.0).ok_or_else(Error::no_such_overload)
}

fn ip<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::opaque(Ip(read(text(args)?)?)))
}

fn is_ip<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(read(text(args)?).is_ok()))
}

fn is_canonical<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let text = text(args)?;
    Ok(Value::Bool(read(text)?.to_string() == text))
}

fn string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(address(args)?.to_string()))
}

fn family<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(if address(args)?.is_ipv4() { 4 } else { 6 }))
}

fn is_unspecified<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(address(args)?.is_unspecified()))
}

fn is_loopback<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(address(args)?.is_loopback()))
}

fn is_link_local_multicast<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(match address(args)? {
        IpAddr::V4(v4) => v4.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }))
}

fn is_link_local_unicast<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(link_local(address(args)?)))
}

fn is_global_unicast<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let ip = address(args)?;
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || link_local(ip);
    Ok(Value::Bool(!broadcast && !special))
}

fn link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}
