//! Names that pass and names that do not, with the words of the real server.

use super::*;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn formats_accept_and_reject_the_same_texts_as_kubernetes() {
    let long = "a".repeat(64);
    let longer = "a".repeat(254);
    for (format, good, bad) in [
        (
            Format::Dns1123Label,
            &["a", "ab", "0", "0-1", "a--1--2--b", &long[1..]][..],
            &["", "A", "aBc", "-", "a-", "-a", ".", "a.b", "_", "a_b", " ", "a ", "1 2", "é", &long, "a\n"][..],
        ),
        (
            Format::Dns1123Subdomain,
            &["a", "0.1.2", "a-1.b", "a.b.c.d", &longer[1..]],
            &["", "A", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "a_b", "a b", "$", &longer],
        ),
        (
            Format::Dns1123SubdomainWithUnderscore,
            &["a", "_a.b", "a_b._c", "a__b"],
            &["", "_", "a_", "__a", "A", "_.a"],
        ),
        (Format::Dns1035Label, &["a", "ab", "a-1"], &["", "0", "1a", "A", "a-", "a.b", &long]),
        (
            Format::WildcardDns1123Subdomain,
            &["*.example.com", "*.bar.com", "*.a"],
            &["*.*.bar.com", "*.foo.*.com", "*bar.com", "f*.bar.com", "*", "*.", ""],
        ),
        (
            Format::QualifiedName,
            &[
                "simple",
                "now-with-dashes",
                "1-starts-with-num",
                "1.2.3",
                "Uppercase",
                "simple/simple",
                "a.b/C_d",
            ],
            &[
                "",
                "nospecialchars%^=@",
                "cantendwithadash-",
                "-a",
                "only/one/slash",
                "Example.com/abc",
                "a/",
                "/a",
                &long,
            ],
        ),
        (
            Format::LabelValue,
            &["", "simple", "end_in_1", "A.b-C", &long[1..]],
            &["-a", "a-", "a b", "a/b", "not ok!", ".", &long],
        ),
        (Format::CIdentifier, &["a", "_", "_1", "aB_9"], &["", "1", "a-b", "é"]),
        (
            Format::PortName,
            &["http", "a1", "1-a", "telnet-1"],
            &["", "123", "-a", "a-", "a--b", "A", "a_b", "longerthan15char"],
        ),
        (Format::Percent, &["0%", "100%"], &["", "%", "1", "-1%", "1.5%", "1%%"]),
        (Format::HttpHeaderName, &["X-Header-Name", "a", "-"], &["", "a b", "a:b", "_"]),
        (Format::EnvVarName, &["a", "_A.b-c", "-", ".a"], &["", "1a", "a b", "a=b", ".", "..", "..a"]),
        (Format::RelaxedEnvVarName, &["1a", " ", "a b~"], &["", "a=b", "é", "a\tb"]),
        (
            Format::ConfigMapKey,
            &["a", "A_b.c-d", ".dot", "0", &longer[1..]],
            &["", ".", "..", "..a", "a/b", "a b", &longer],
        ),
        (Format::ConditionReason, &["A", "a_", "A,b:C"], &["", "1", "_a", "a,", "a:"]),
        (Format::DecimalInteger, &["0", "1", "-456"], &["", "-", "-0", "00", "07", "+1", "1a", "-01"]),
        (Format::PathSegment, &["", "a:b", "...", "A b"], &[".", "..", "a/b", "%"]),
    ] {
        for text in good {
            assert_eq!(format.problems(text), Vec::<String>::new(), "{format:?} {text:?}");
        }
        for text in bad {
            assert!(!format.fits(text), "{format:?} {text:?}");
        }
    }
}

#[test]
fn formats_complain_in_kubernetes_words() {
    let long = "A".repeat(64);
    let long_prefix = format!("{}/a", "a".repeat(254));
    for (format, text, expected) in [
        (Format::Dns1123Label, "a.b", vec!["must not contain dots".to_owned()]),
        (Format::Dns1123Label, "C_", vec![LABEL.to_owned()]),
        (Format::Dns1123Label, &long, vec!["must be no more than 63 characters".to_owned(), LABEL.to_owned()]),
        (Format::Dns1123Subdomain, "Bad_Name", vec![SUBDOMAIN.to_owned()]),
        (Format::QualifiedName, "a b", vec![format!("name part {KEY}")]),
        (Format::QualifiedName, "/x", vec!["prefix part must be non-empty".to_owned()]),
        (Format::QualifiedName, "A/x", vec![format!("prefix part {SUBDOMAIN}")]),
        (Format::QualifiedName, "a/", vec!["name part must be non-empty".to_owned(), format!("name part {KEY}")]),
        (Format::QualifiedName, &long, vec!["name part must be no more than 63 bytes".to_owned()]),
        (Format::QualifiedName, &long_prefix, vec!["prefix part must be no more than 253 bytes".to_owned()]),
        (
            Format::QualifiedName,
            "a/b/c",
            vec![format!(
                "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )],
        ),
        (
            Format::ConfigMapKey,
            "../b",
            vec![
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                    .to_owned(),
                "must not start with '..'".to_owned(),
            ],
        ),
        (
            Format::PortName,
            "-1--",
            vec![
                "must contain at least one letter (a-z)".to_owned(),
                "must not contain consecutive hyphens".to_owned(),
                "must not begin or end with a hyphen".to_owned(),
            ],
        ),
        (Format::PathSegment, "..", vec!["may not be '..'".to_owned()]),
        (Format::PathSegment, "a/%", vec!["may not contain '/'".to_owned(), "may not contain '%'".to_owned()]),
    ] {
        assert_eq!(format.problems(text), expected, "{format:?} {text:?}");
    }
}

#[test]
fn a_prefix_may_end_in_a_dash() {
    for (rule, prefix, accepted) in [
        (NameRule::DnsSubdomain, "web-", true),
        (NameRule::DnsSubdomain, "a-", true),
        (NameRule::DnsSubdomain, "a.-", true),
        (NameRule::DnsSubdomain, "-", false),
        (NameRule::DnsSubdomain, "Web-", false),
        (NameRule::DnsLabel, "a.b-", false),
        (NameRule::Dns1035Label, "1-", true),
        (NameRule::PathSegment, "..", true),
        (NameRule::PathSegment, "a/", false),
    ] {
        assert_eq!(rule.prefix_problems(prefix).is_empty(), accepted, "{rule:?} {prefix}");
    }
    assert_eq!(NameRule::PathSegment.problems("."), ["may not be '.'"]);
    assert_eq!(port_number_problems(0), ["must be between 1 and 65535, inclusive"]);
    assert_eq!(id_problems(-1), ["must be between 0 and 2147483647, inclusive"]);
}

fn check(check: fn(&Path<'_>, &str) -> ErrorList, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(check(&Path::new("f"), text).to_string(), *expected, "{text}");
    }
}

#[test]
fn names_carry_their_domain() {
    check(
        fully_qualified_name,
        &[
            ("a.example.com", ""),
            ("", "f: Required value"),
            (
                "bad",
                r#"f: Invalid value: "bad": should be a domain with at least three segments separated by dots"#,
            ),
        ],
    );
    check(
        fully_qualified_domain_name,
        &[
            ("example.com.", ""),
            (
                "com",
                r#"f: Invalid value: "com": should be a domain with at least two segments separated by dots"#,
            ),
            ("", "f: Required value"),
        ],
    );
    check(
        domain_prefixed_path,
        &[
            ("acme.io/foo/%20", ""),
            (
                "acme.io",
                r#"f: Invalid value: "acme.io": must be a domain-prefixed path (such as "acme.io/foo")"#,
            ),
            ("/foo", r#"f: Invalid value: "/foo": must be a domain-prefixed path (such as "acme.io/foo")"#),
            (
                "acme.io/a b",
                r#"f: Invalid value: "a b": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"#,
            ),
        ],
    );
    check(
        domain_prefixed_key,
        &[
            ("acme.io/foo", ""),
            ("foo", r#"f: Invalid value: "foo": must be a domain-prefixed key (such as "acme.io/foo")"#),
            ("/foo", r#"f: Invalid value: "/foo": prefix part must be non-empty"#),
        ],
    );
    check(
        relative_path,
        &[
            ("a/..b/c", ""),
            ("/a", r#"f: Invalid value: "/a": must be a relative path"#),
            ("a/../..", r#"f: Invalid value: "a/../..": must not contain '..'"#),
        ],
    );
}

#[test]
fn addresses_are_strict_where_kubernetes_is() {
    let valid_ip = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    let check = |check: fn(&Path<'_>, &str) -> ErrorList, text: &str, expected: &str| {
        let expected = match expected {
            "" => String::new(),
            problem => format!("f: Invalid value: {text:?}: {problem}"),
        };
        assert_eq!(check(&Path::new("f"), text).to_string(), expected);
    };
    for (text, strict, legacy) in [
        ("1.2.3.4", "", ""),
        ("2001:db8::1", "", ""),
        ("::", "", ""),
        ("2001:DB8:0:0:0::1", "must be in canonical form (\"2001:db8::1\")", ""),
        ("fe80::0abc", "must be in canonical form (\"fe80::abc\")", ""),
        ("010.2.3.4", "must not have leading 0s", "must not have leading 0s"),
        ("::00001", "must not have leading 0s", "must not have leading 0s"),
        (
            "::ffff:1.2.3.4",
            "must not be an IPv4-mapped IPv6 address",
            "must not be an IPv4-mapped IPv6 address",
        ),
        ("1.2.3", valid_ip, valid_ip),
        ("1.2.3.256", valid_ip, valid_ip),
        ("fe80::1%eth0", valid_ip, valid_ip),
        ("1:2:3:4:5:6:7::8", valid_ip, valid_ip),
        ("", valid_ip, valid_ip),
    ] {
        check(ip, text, strict);
        check(legacy_ip, text, legacy);
    }
    let valid_cidr = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let zeros = "must not have leading 0s in IP or prefix length";
    let bits = "must not have bits set beyond the prefix length";
    for (text, strict, legacy) in [
        ("10.0.0.0/8", "", ""),
        ("0.0.0.0/0", "", ""),
        ("::/0", "", ""),
        ("2001:DB8::/64", "must be in canonical form (\"2001:db8::/64\")", ""),
        ("10.0.0.1/8", bits, bits),
        ("10.0.0.0/08", zeros, zeros),
        ("010.0.0.0/8", zeros, zeros),
        (
            "::ffff:1.2.3.0/120",
            "must not have an IPv4-mapped IPv6 address",
            "must not have an IPv4-mapped IPv6 address",
        ),
        ("10.0.0.0/33", valid_cidr, valid_cidr),
        ("10.0.0.0/+8", valid_cidr, valid_cidr),
        ("10.0.0.0/", valid_cidr, valid_cidr),
        ("10.0.0.0", valid_cidr, valid_cidr),
    ] {
        check(cidr, text, strict);
        check(legacy_cidr, text, legacy);
    }
    let valid_interface = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
    for (text, expected) in [
        ("10.9.8.7/24", ""),
        ("2001:db8::1/64", ""),
        ("::ffff:192.168.0.1/120", "must be in canonical form (\"192.168.0.1/24\")"),
        ("::ffff:192.168.0.1/24", "must be in canonical form (\"192.168.0.1/24\")"),
        ("10.9.8.7", valid_interface),
    ] {
        check(interface_address, text, expected);
    }
}

#[test]
fn loose_addresses_earn_warnings() {
    let path = Path::new("f");
    for (text, expected) in [
        ("1.2.3.4", None),
        ("010.2.3.4", Some("f: non-standard IP address \"010.2.3.4\" is invalid: use \"10.2.3.4\"")),
        ("::ffff:1.2.3.4", Some("f: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\"")),
        ("FE80::1", Some("f: IPv6 address \"FE80::1\" should be in RFC 5952 canonical format (\"fe80::1\")")),
    ] {
        assert_eq!(ip_warning(&path, text).as_deref(), expected);
    }
    for (text, expected) in [
        ("10.0.0.0/8", &[][..]),
        (
            "10.0.0.1/8",
            &[
                "f: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
            ],
        ),
        ("10.0.0.0/08", &["f: non-standard CIDR value \"10.0.0.0/08\" is invalid: use \"10.0.0.0/8\""]),
        (
            "::ffff:1.2.3.0/120",
            &["f: non-standard CIDR value \"::ffff:1.2.3.0/120\" is invalid: use \"1.2.3.0/24\""],
        ),
        (
            "FE80::/10",
            &["f: IPv6 CIDR value \"FE80::/10\" should be in RFC 5952 canonical format (\"fe80::/10\")"],
        ),
    ] {
        assert_eq!(cidr_warnings(&path, text), expected);
    }
}

#[test]
fn labels_and_annotations_are_checked_entry_by_entry() {
    let path = Path::new("metadata.labels");
    assert_eq!(
        labels(&path, [("ok", "ok"), ("/x", "not ok!")]).to_string(),
        "[metadata.labels: Invalid value: \"/x\": prefix part must be non-empty, metadata.labels: Invalid value: \
         \"not ok!\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
         and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
         used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]"
    );
    let path = Path::new("metadata.annotations");
    let full = "x".repeat(MAX_ANNOTATION_BYTES - 1);
    for (key, value, expected) in [
        ("Example.COM/Key", "any thing!", ""),
        ("a", &full, ""),
        ("ab", &full, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ("/B", "", "metadata.annotations: Invalid value: \"/B\": prefix part must be non-empty"),
    ] {
        assert_eq!(annotations(&path, [(key, value)]).to_string(), expected);
    }
}
