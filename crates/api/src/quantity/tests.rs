//! Quantities against what Kubernetes' own code makes of the same texts.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_parse_and_print_as_in_kubernetes() {
    use QuantityFormat::{BinarySi, DecimalExponent, DecimalSi};
    // What is parsed, what it prints as, its family, and whether it counts as a machine integer.
    for (text, printed, format, integer) in [
        ("0", "0", DecimalSi, Some(0)),
        ("0m", "0", DecimalSi, None),
        ("0Ki", "0", BinarySi, Some(0)),
        ("1", "1", DecimalSi, Some(1)),
        ("100m", "100m", DecimalSi, None),
        ("1000m", "1", DecimalSi, None),
        ("1500m", "1500m", DecimalSi, None),
        ("1.5", "1500m", DecimalSi, None),
        ("1.500", "1.500", DecimalSi, None),
        ("1.50", "1500m", DecimalSi, None),
        ("+1", "+1", DecimalSi, Some(1)),
        ("01", "01", DecimalSi, Some(1)),
        ("1000", "1k", DecimalSi, Some(1000)),
        ("1024", "1024", DecimalSi, Some(1024)),
        ("-12.5k", "-12500", DecimalSi, Some(-12500)),
        ("12E", "12E", DecimalSi, None),
        ("5n", "5n", DecimalSi, None),
        ("3.001n", "4n", DecimalSi, None),
        ("0.0000000001", "1n", DecimalSi, None),
        ("-0.0000000001", "-1n", DecimalSi, None),
        ("1.1E-9", "2e-9", DecimalExponent, None),
        ("1e3", "1e3", DecimalExponent, Some(1000)),
        ("1E3", "1E3", DecimalExponent, Some(1000)),
        ("1e4", "10e3", DecimalExponent, Some(10000)),
        ("1.3E+6", "1300e3", DecimalExponent, Some(1300000)),
        ("1e4294967296", "1e4294967296", DecimalExponent, Some(1)),
        ("1Ki", "1Ki", BinarySi, Some(1024)),
        ("8Ki", "8Ki", BinarySi, Some(8192)),
        ("1024Ki", "1Mi", BinarySi, Some(1048576)),
        ("01Ki", "01Ki", BinarySi, Some(1024)),
        ("1.5Ki", "1536", BinarySi, None),
        ("1.5Gi", "1536Mi", BinarySi, None),
        ("100.035Ki", "102435840m", BinarySi, None),
        ("0.5Ki", "512", BinarySi, None),
        ("0.000000000001Ki", "2n", DecimalSi, None),
        ("1Ei", "1Ei", BinarySi, None),
        ("9Ei", "9223372036854775807", BinarySi, None),
        ("-100Ei", "-9223372036854775807", BinarySi, None),
        ("12345678901234567890123", "12345678901234567890123", DecimalSi, None),
        ("12345678901234567890123456789000", "12345678901234567890123456789k", DecimalSi, None),
        ("-", "0", DecimalSi, Some(0)),
        (".", "0", DecimalSi, Some(0)),
        ("Ki", "0", BinarySi, Some(0)),
        (".5", "500m", DecimalSi, None),
        ("1.G", "1.G", DecimalSi, Some(1000000000)),
    ] {
        let quantity = parse(text);
        assert_eq!(
            (quantity.to_string().as_str(), quantity.format(), quantity.as_i64()),
            (printed, format, integer),
            "{text}"
        );
    }
}

#[test]
fn what_kubernetes_would_lose_is_kept() {
    assert_eq!(parse("1000E").to_string(), "1000E");
    assert_eq!(parse("12340E").canonical(), "12340E");
}

#[test]
fn bad_texts_get_the_real_errors() {
    let format =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let suffix = "unable to parse quantity's suffix";
    let number = "unable to parse numeric part of quantity";
    let too_long = "1".repeat(2000);
    for (text, expected) in [
        ("", format),
        ("aoeu", format),
        (" 1", format),
        ("1 ", format),
        ("1.1.M", format),
        ("1+1.0M", format),
        ("0.1am", format),
        ("1é", format),
        ("1e3m", format),
        ("0.1mi", suffix),
        (".5i", suffix),
        ("1K", suffix),
        ("1e", suffix),
        ("-3.01e-", suffix),
        ("1Ki5", suffix),
        ("1e9999", suffix),
        // Cut to 32 bits this is a large exponent; that is where we stop following Kubernetes.
        ("1e-4000000000", suffix),
        ("e-10", number),
        (".e-10", number),
        (&too_long, number),
    ] {
        assert_eq!(
            text.parse::<Quantity>().map_err(|error| error.to_string()),
            Err(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn sums_keep_the_unit_that_counts() {
    for (left, right, sum, difference) in [
        ("100m", "0", "100m", "100m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("1", "1Ki", "1025", "-1023"),
        ("1.500", "500m", "2", "1"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        ("1n", "1E", "1000000000000000000000000001n", "-999999999999999999999999999n"),
    ] {
        let (mut added, mut taken) = (parse(left), parse(left));
        added += &parse(right);
        taken -= &parse(right);
        assert_eq!(
            (added.to_string().as_str(), taken.to_string().as_str()),
            (sum, difference),
            "{left} {right}"
        );
    }
    assert_eq!((-parse("1Ki")).to_string(), "-1Ki");
    assert_eq!(parse("9.01").multiply(3).to_string(), "27030m");
    assert_eq!(parse("9.01").round_up(0).to_string(), "10");
    assert_eq!(parse("-9.01").round_up(0).to_string(), "-10");
}

#[test]
fn values_round_away_from_zero() {
    for (text, value, milli, integer) in [
        ("1500m", Some(2), Some(1500), false),
        ("-1500m", Some(-2), Some(-1500), false),
        ("1n", Some(1), Some(1), false),
        ("2k", Some(2000), Some(2000000), true),
        ("1000m", Some(1), Some(1000), true),
        ("1.5Ki", Some(1536), Some(1536000), true),
        ("10E", None, None, true),
        ("9E", Some(9000000000000000000), None, true),
        ("0", Some(0), Some(0), true),
    ] {
        let quantity = parse(text);
        assert_eq!(
            (quantity.value(), quantity.milli_value(), quantity.is_integer()),
            (value, milli, integer),
            "{text}"
        );
    }
}

#[test]
fn json_takes_strings_and_numbers() {
    for (value, expected) in [
        (json!("1Gi"), json!("1Gi")),
        (json!(" 1000m "), json!("1")),
        (json!(5), json!("5")),
        (json!(-5), json!("-5")),
        (json!(0.5), json!("500m")),
        (json!(null), json!("0")),
    ] {
        let quantity: Quantity = serde_json::from_value(value).unwrap();
        assert_eq!(serde_json::to_value(&quantity).unwrap(), expected);
    }
    assert!(serde_json::from_value::<Quantity>(json!("1x")).is_err());
    assert!(serde_json::from_value::<Quantity>(json!({})).is_err());
}

prop_compose! {
    /// A text, and its value in billionths.
    fn written()(
        negative in any::<bool>(),
        digits in 0_u64..10_000_000_000,
        places in 0_u32..6,
        suffix in prop::sample::select(vec!["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "e-2", "E6"]),
    ) -> (String, i128) {
        let power = 10_u64.pow(places);
        let sign = if negative { "-" } else { "" };
        let fraction = format!("{:0width$}", digits % power, width = places as usize);
        let dot = if places > 0 { format!(".{fraction}") } else { String::new() };
        let unit: u128 = match suffix {
            "n" => 1,
            "u" => 1_000,
            "m" => 1_000_000,
            "e-2" => 10_000_000,
            "" => 1_000_000_000,
            "k" | "e3" => 1_000_000_000_000,
            "M" | "E6" => 1_000_000_000_000_000,
            "G" => 1_000_000_000_000_000_000,
            "T" => 1_000_000_000_000_000_000_000,
            "P" => 1_000_000_000_000_000_000_000_000,
            "E" => 1_000_000_000_000_000_000_000_000_000,
            "Ki" => 1_000_000_000 << 10,
            "Mi" => 1_000_000_000 << 20,
            "Gi" => 1_000_000_000 << 30,
            _ => 1_000_000_000 << 40,
        };
        let billionths = (u128::from(digits) * unit).div_ceil(u128::from(power)).cast_signed();
        let billionths = match suffix {
            // Binary quantities stop at the largest machine word.
            "Ki" | "Mi" | "Gi" | "Ti" => billionths.min(i128::from(i64::MAX) * 1_000_000_000),
            _ => billionths,
        };
        (format!("{sign}{}{dot}{suffix}", digits / power), if negative { -billionths } else { billionths })
    }
}

#[test]
fn the_canonical_text_of_the_longest_quantities_parses_back() {
    let nines = |count: usize| "9".repeat(count);
    for text in [
        nines(1000),
        format!("{}.1", nines(1000)),
        format!("-{}.123456789", nines(1000)),
        format!("{}k", nines(997)),
    ] {
        let canonical = parse(&text).canonical();
        assert_eq!(parse(&canonical), parse(&text), "{text}");
    }
    for text in
        [nines(1001), format!("{}k", nines(998)), "1e1000".to_owned(), format!("1{}", "0".repeat(1000))]
    {
        assert_eq!(text.parse::<Quantity>(), Err(ParseError::Number), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_parses_back((text, _) in written()) {
        let quantity = parse(&text);
        prop_assert_eq!(&parse(&quantity.to_string()), &quantity);
        let canonical = quantity.canonical();
        prop_assert_eq!(&parse(&canonical), &quantity);
        prop_assert_eq!(parse(&canonical).canonical(), canonical);
    }

    #[test]
    fn order_and_sums_agree_with_integers((left, left_model) in written(), (right, right_model) in written()) {
        let (mut left, right) = (parse(&left), parse(&right));
        prop_assert_eq!(left.cmp(&right), left_model.cmp(&right_model));
        prop_assert_eq!(left.sign(), left_model.cmp(&0));
        left += &right;
        prop_assert_eq!(&left, &parse(&format!("{}n", left_model + right_model)));
    }

    #[test]
    fn no_text_is_too_strange(text in ".{0,12}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            prop_assert_eq!(parse(&quantity.to_string()), quantity);
        }
    }
}
