//! `--runtime-config`: which versions of built-in groups are not served.

use super::flags::Flags;
use anyhow::{Result, bail};

const FLAG: &str = "runtime-config";

/// The versions that the flag turns off, as group and version. It can turn on nothing that is not there.
pub(super) fn hidden(flags: &Flags) -> Result<Vec<(String, String)>> {
    let mut hidden = Vec::new();
    for pair in flags.all(FLAG) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_served = match value {
            "" | "true" | "1" => true,
            "false" | "0" => false,
            other => bail!("invalid value of --{FLAG} {key}={other}: use true or false"),
        };
        match version(key) {
            Some(version) if !is_served => hidden.push(version),
            Some(version) if hidden.contains(&version) => hidden.retain(|other| *other != version),
            _ => tracing::warn!(
                "--{FLAG} {pair} changes nothing: each API has its fixed versions here, and GROUP/VERSION=false turns one off"
            ),
        }
    }
    Ok(hidden)
}

/// The group and version of a key. `None` if it is a set of them, or one resource.
fn version(key: &str) -> Option<(String, String)> {
    let (group, version) = match key.split('/').collect::<Vec<_>>()[..] {
        ["v1"] => ("", "v1"),
        // Kubernetes: api/all, api/beta and so on.
        ["api", version] if version != "v1" => return None,
        ["api", version] => ("", version),
        [group, version] => (group, version),
        _ => return None,
    };
    Some((group.to_owned(), version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_turned_off_one_by_one() {
        for (argument, expected) in [
            ("batch/v1=false", Ok(vec![("batch", "v1")])),
            ("batch/v1=false,apps/v1=0", Ok(vec![("batch", "v1"), ("apps", "v1")])),
            ("batch/v1=false,batch/v1=true", Ok(vec![])),
            ("api/all=false,api/beta=true,apps/v1/deployments=false,batch/v2", Ok(vec![])),
            ("v1=false", Ok(vec![("", "v1")])),
            ("batch/v1=no", Err("invalid value of --runtime-config batch/v1=no: use true or false")),
        ] {
            let flags = Flags::parse([format!("--runtime-config={argument}")]).unwrap();
            let found = hidden(&flags).map_err(|error| error.to_string());
            let found = match &found {
                Ok(found) => Ok(found.iter().map(|(group, version)| (&**group, &**version)).collect()),
                Err(problem) => Err(&**problem),
            };
            assert_eq!(found, expected, "{argument}");
        }
    }
}
