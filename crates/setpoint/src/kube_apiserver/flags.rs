//! Command-line flags, read as kube-apiserver reads them.

mod list;

use anyhow::{Context, Result, bail};
use list::{FLAGS, Flag, Form, Treatment};
use std::{collections::BTreeMap, fs, str::FromStr, time::Duration};

/// The most arguments: those of any real command line are far fewer.
const MAX_ARGUMENTS: usize = 10_000;

/// Flags by name, each with all of its values.
#[derive(Debug, Default)]
pub(crate) struct Flags(BTreeMap<&'static str, Vec<String>>);

impl Flags {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Flags> {
        let mut flags = Flags::default();
        let mut arguments = arguments.into_iter().take(MAX_ARGUMENTS);
        while let Some(argument) = arguments.next() {
            let (name, value) = split(&argument)?;
            let flag = find(&name).with_context(|| format!("unknown flag: --{name}"))?;
            let value = match (value, flag.form) {
                (Some(value), _) => value,
                (None, Form::Switch) => "true".to_owned(),
                (None, Form::Value) => {
                    arguments.next().with_context(|| format!("flag needs an argument: --{name}"))?
                }
            };
            if let Treatment::Refused(advice) = flag.treatment {
                bail!("--{name} is not supported: {advice}");
            }
            flags.0.entry(flag.name).or_default().push(value);
        }
        Ok(flags)
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All values of a flag, also those that one argument lists with commas.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        debug_assert!(find(name).is_some(), "--{name} is in no list");
        let values = self.0.get(name).into_iter().flatten();
        values.flat_map(|value| value.split(',')).filter(|value| !value.is_empty())
    }

    /// The last value of a flag.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        debug_assert!(find(name).is_some(), "--{name} is in no list");
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The last value of a switch.
    pub(super) fn switch(&self, name: &str, default: bool) -> Result<bool> {
        match self.last(name) {
            None => Ok(default),
            // Go: what its parser of booleans accepts.
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some(other) => bail!("invalid argument {other:?} for \"--{name}\" flag: use true or false"),
        }
    }

    /// The last value of a flag, parsed.
    pub(super) fn parsed<T: FromStr>(&self, name: &str, default: T) -> Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let Some(text) = self.last(name) else { return Ok(default) };
        text.parse().with_context(|| format!("invalid argument {text:?} for \"--{name}\" flag"))
    }

    /// The last value of a flag, as a duration of Go such as `1m30s`.
    pub(super) fn duration(&self, name: &str, default: Duration) -> Result<Duration> {
        let Some(text) = self.last(name) else { return Ok(default) };
        let nanoseconds = api::time::parse_duration(text).ok().and_then(|it| u64::try_from(it).ok());
        let nanoseconds = nanoseconds
            .with_context(|| format!("invalid argument {text:?} for \"--{name}\" flag: use 30s or 5m"))?;
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The contents of all files that a flag names.
    pub(super) fn files(&self, name: &str) -> Result<String> {
        let mut texts = String::new();
        for path in self.all(name) {
            texts.push_str(&read(path, name)?);
            texts.push('\n');
        }
        Ok(texts)
    }

    /// Logs which flags change nothing here, and why.
    pub(super) fn warn_of_ignored(&self) {
        for name in self.0.keys() {
            if let Some(Flag { treatment: Treatment::Ignored(reason), .. }) = find(name) {
                tracing::warn!("--{name} changes nothing: {reason}");
            }
        }
    }
}

/// The text of `--help`. Test environments look in it for flags, each at the start of a line.
pub(super) fn help() -> String {
    let mut text = String::from("kube-apiserver of Setpoint. Flags that have an effect here:\n\n");
    for flag in FLAGS.iter().filter(|flag| flag.treatment == Treatment::Understood) {
        text.push_str(&format!("  --{}\n", flag.name));
    }
    text.push_str("\nThe other flags of kube-apiserver are accepted and explained in the log, or refused.");
    text
}

pub(super) fn read(path: &str, flag: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("--{flag} {path}"))
}

fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.binary_search_by(|flag| flag.name.cmp(name)).ok().and_then(|at| FLAGS.get(at))
}

/// The name of an argument, and its value if it holds one.
fn split(argument: &str) -> Result<(String, Option<String>)> {
    if let Some(long) = argument.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        // Kubernetes: underscores in names are dashes.
        return Ok((name.replace('_', "-"), value));
    }
    let Some(short) = argument.strip_prefix('-').filter(|short| !short.is_empty()) else {
        bail!("\"kube-apiserver\" does not take any arguments, got {argument:?}");
    };
    let rest = |short: &str| Some(short[1..].trim_start_matches('=').to_owned()).filter(|it| !it.is_empty());
    match short.chars().next() {
        Some('h') => Ok(("help".to_owned(), None)),
        Some('v') => Ok(("v".to_owned(), rest(short))),
        Some(other) => bail!("unknown shorthand flag: {other:?} in {argument}"),
        None => bail!("\"kube-apiserver\" does not take any arguments, got {argument:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, String> {
        let parsed = Flags::parse(arguments.iter().map(|argument| (*argument).to_owned()));
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read_as_by_kube_apiserver() {
        let flags = parse(&[
            "--secure-port=1",
            "--client-ca-file",
            "a",
            "--client_ca_file=b,c",
            "-v",
            "2",
            "--anonymous-auth",
            "--secure-port=2",
            "--allow-privileged=false",
        ]);
        let flags = flags.unwrap();
        assert_eq!(flags.last("secure-port"), Some("2"));
        assert_eq!(flags.all("client-ca-file").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(flags.parsed("v", 0).unwrap(), 2);
        assert!(flags.switch("anonymous-auth", false).unwrap());
        assert!(!flags.switch("allow-privileged", true).unwrap());
        for (argument, expected) in [("-v=4", 4), ("-v5", 5), ("--v=6", 6)] {
            assert_eq!(parse(&[argument]).unwrap().parsed("v", 0).unwrap(), expected, "{argument}");
        }
        assert_eq!(
            parse(&["--request-timeout=1m30s"])
                .unwrap()
                .duration("request-timeout", Duration::ZERO)
                .unwrap()
                .as_secs(),
            90
        );
    }

    #[test]
    fn bad_command_lines_are_refused_with_kube_apiservers_words() {
        for (arguments, expected) in [
            (&["--x"][..], "unknown flag: --x"),
            (&["--insecure-port=0"], "unknown flag: --insecure-port"),
            (&["-x"], "unknown shorthand flag: 'x' in -x"),
            (&["--etcd-servers"], "flag needs an argument: --etcd-servers"),
            (&["serve"], "\"kube-apiserver\" does not take any arguments, got \"serve\""),
            (
                &["--encryption-provider-config=x"],
                "--encryption-provider-config is not supported: objects are stored unencrypted; encrypt the disk \
                 instead",
            ),
        ] {
            assert_eq!(parse(arguments).unwrap_err(), expected, "{arguments:?}");
        }
        let bad =
            parse(&["--allow-privileged=perhaps", "--request-timeout=soon", "--secure-port=x"]).unwrap();
        assert!(bad.switch("allow-privileged", false).is_err());
        assert!(bad.duration("request-timeout", Duration::ZERO).is_err());
        assert!(bad.parsed::<u16>("secure-port", 0).is_err());
    }

    #[test]
    fn the_list_of_flags_is_sorted_and_each_flag_can_be_parsed() {
        assert!(FLAGS.is_sorted_by(|one, next| one.name < next.name));
        for flag in FLAGS {
            let parsed = parse(&[&format!("--{}=1", flag.name)]);
            assert_eq!(parsed.is_ok(), !matches!(flag.treatment, Treatment::Refused(_)), "{}", flag.name);
        }
    }
}
