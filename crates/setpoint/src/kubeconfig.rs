//! `setpoint kubeconfig`: prints the kubeconfig of a cluster, or adds it to your own.

use crate::{
    client::{connect::home, yaml},
    up::{print_line, private_file},
};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Print the kubeconfig of the cluster here.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint kubeconfig > admin.kubeconfig
  setpoint kubeconfig --merge             then plain `kubectl` talks to this cluster
  setpoint kubeconfig --data-dir /var/lib/setpoint")]
pub(crate) struct KubeconfigOptions {
    /// Directory of the data of `setpoint up`
    #[arg(long, default_value = ".setpoint", value_name = "DIR")]
    data_dir: PathBuf,
    /// Add it to $KUBECONFIG or ~/.kube/config, and make it the current context
    #[arg(long)]
    merge: bool,
}

pub(crate) fn run(options: &KubeconfigOptions) -> Result<()> {
    let source = options.data_dir.join("kubeconfig");
    let text = fs::read_to_string(&source).with_context(|| {
        format!(
            "cannot read {}: start a cluster with `setpoint up`, or name its folder with --data-dir",
            source.display()
        )
    })?;
    if !options.merge {
        print_line(text.trim_end());
        return Ok(());
    }
    let target = own_kubeconfig()?;
    let current = match fs::read_to_string(&target) {
        Ok(text) => read(&text).with_context(|| no_kubeconfig(&target))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Value::Null,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", target.display())),
    };
    let added = read(&text).with_context(|| {
        format!("{} is no kubeconfig: remove it, and start `setpoint up` again", source.display())
    })?;
    let merged = merge(current, &added).with_context(|| no_kubeconfig(&target))?;
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    private_file::write(&target, &yaml::document(&merged))?;
    let context = merged["current-context"].as_str().unwrap_or_default();
    print_line(&format!("{}: context \"{context}\" added, and current", target.display()));
    Ok(())
}

/// The first file of $KUBECONFIG, or ~/.kube/config.
fn own_kubeconfig() -> Result<PathBuf> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let first = std::env::split_paths(&named).find(|path| !path.as_os_str().is_empty());
    let path = first.or_else(|| home().map(|home| home.join(".kube/config")));
    let path = path.context("there is no home directory: name a file with $KUBECONFIG")?;
    // Links are followed: the file that they lead to is written.
    Ok(fs::canonicalize(&path).unwrap_or_else(|_| Path::new(&path).to_owned()))
}

fn no_kubeconfig(path: &Path) -> String {
    format!("{} is no kubeconfig: move it away, or name another file with $KUBECONFIG", path.display())
}

fn read(text: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&schema::yaml::to_json(text.as_bytes())?.json)?)
}

/// A kubeconfig with the entries of another, which replace those of the same name.
fn merge(current: Value, added: &Value) -> Result<Value> {
    let mut merged = match current {
        Value::Null => json!({"apiVersion": "v1", "kind": "Config", "preferences": {}}),
        Value::Object(members) => Value::Object(members),
        _ => bail!("it has no fields"),
    };
    for field in ["clusters", "users", "contexts"] {
        let mut entries = merged[field].as_array().cloned().unwrap_or_default();
        for entry in added[field].as_array().into_iter().flatten() {
            match entries.iter_mut().find(|known| known["name"] == entry["name"]) {
                Some(known) => *known = entry.clone(),
                None => entries.push(entry.clone()),
            }
        }
        merged[field] = entries.into();
    }
    merged["current-context"] = added["current-context"].clone();
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_same_name_are_replaced_and_others_kept() {
        let file = |name: &str, server: &str| {
            json!({
                "clusters": [{"name": name, "cluster": {"server": server}}],
                "users": [{"name": name, "user": {}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "current-context": name,
            })
        };
        let first = merge(Value::Null, &file("a", "1")).unwrap();
        assert_eq!((&first["kind"], &first["current-context"]), (&json!("Config"), &json!("a")));
        let second = merge(first, &file("b", "2")).unwrap();
        let third = merge(second, &file("a", "3")).unwrap();
        let servers: Vec<_> =
            third["clusters"].as_array().unwrap().iter().map(|entry| &entry["cluster"]["server"]).collect();
        assert_eq!(servers, ["3", "2"]);
        assert_eq!(third["current-context"], "a");
        assert!(merge(json!("text"), &file("a", "1")).is_err());
    }
}
