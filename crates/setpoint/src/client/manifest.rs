//! Reads objects from files, folders and standard input.

use super::failure::{ClientError, ClientResult};
use serde_json::Value;
use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

/// The most bytes of one file: far more than a server takes for one object.
const MAX_FILE: u64 = 256 << 20;
/// How deep folders may nest, so that links in a circle end.
const MAX_FOLDERS: usize = 32;
/// The file types that are read from folders.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Which files a command reads.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FileOptions {
    /// A file, a folder of files, or - for standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_delimiter = ',')]
    pub(crate) files: Vec<String>,
    /// Read folders with all folders in them
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Kustomizations need the real kubectl
    #[arg(short = 'k', long, value_name = "DIR", hide = true)]
    pub(crate) kustomize: Option<String>,
}

/// An object and the file that it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) source: String,
    pub(crate) object: Value,
}

impl FileOptions {
    /// All objects of all files, lists taken apart.
    pub(crate) fn read(&self) -> ClientResult<Vec<Manifest>> {
        if let Some(folder) = &self.kustomize {
            return Err(ClientError::error(format!(
                "kustomizations are not read here: run `kubectl kustomize {folder} | setpoint apply -f -`, or install kubectl"
            )));
        }
        let mut manifests = Vec::new();
        for file in &self.files {
            if file == "-" {
                let mut text = Vec::new();
                let read = std::io::stdin().lock().take(MAX_FILE).read_to_end(&mut text);
                read.map_err(|error| ClientError::error(format!("standard input: {error}")))?;
                manifests.extend(objects("STDIN", &text)?);
                continue;
            }
            if file.starts_with("http://") || file.starts_with("https://") {
                return Err(ClientError::error(format!(
                    "{file}: only files are read here: fetch it first, as in `curl -sSfL {file} | setpoint apply -f -`"
                )));
            }
            for path in self.paths(file)? {
                let failed = |error| ClientError::error(format!("{}: {error}", path.display()));
                let mut text = Vec::new();
                fs::File::open(&path)
                    .map_err(failed)?
                    .take(MAX_FILE)
                    .read_to_end(&mut text)
                    .map_err(failed)?;
                manifests.extend(objects(&path.display().to_string(), &text)?);
            }
        }
        Ok(manifests)
    }

    fn paths(&self, file: &str) -> ClientResult<Vec<PathBuf>> {
        let path = Path::new(file);
        if !path.exists() {
            return Err(ClientError::error(format!("the path \"{file}\" does not exist")));
        }
        let mut paths = Vec::new();
        if path.is_dir() {
            self.folder(path, 0, &mut paths)?;
            if paths.is_empty() {
                let endings = ENDINGS.map(|ending| format!(".{ending}")).join(" ");
                return Err(ClientError::error(format!(
                    "error reading [{file}]: recognized file extensions are [{endings}]"
                )));
            }
        } else {
            paths.push(path.to_owned());
        }
        Ok(paths)
    }

    fn folder(&self, folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> ClientResult<()> {
        let failed = |error| ClientError::error(format!("{}: {error}", folder.display()));
        let entries = fs::read_dir(folder).map_err(failed)?;
        let mut entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for path in entries.into_iter().map(|entry| entry.path()) {
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if path.is_dir() {
                if self.recursive && depth < MAX_FOLDERS {
                    self.folder(&path, depth + 1, paths)?;
                }
            } else if ENDINGS.contains(&ending) {
                paths.push(path);
            }
        }
        Ok(())
    }
}

/// The objects of a text of YAML documents or JSON values.
pub(crate) fn objects(source: &str, text: &[u8]) -> ClientResult<Vec<Manifest>> {
    let failed = |error: &dyn std::fmt::Display| {
        ClientError::error(format!("error parsing {source}: error converting YAML to JSON: {error}"))
    };
    let text = std::str::from_utf8(text).map_err(|error| failed(&error))?;
    let json =
        || serde_json::Deserializer::from_str(text).into_iter::<Value>().collect::<Result<Vec<_>, _>>();
    // What begins like JSON may be YAML as well.
    let mut found = if text.trim_start().starts_with('{') { json().unwrap_or_default() } else { Vec::new() };
    if found.is_empty() {
        for document in documents(text) {
            let read = schema::yaml::to_json(document.as_bytes()).map_err(|error| failed(&error))?;
            found.push(serde_json::from_slice(&read.json).map_err(|error| failed(&error))?);
        }
    }
    let mut manifests = Vec::new();
    for object in found.into_iter().filter(|value| !value.is_null()) {
        flatten(source, object, &mut manifests)?;
    }
    Ok(manifests)
}

/// The documents of a YAML text, which lines of `---` part.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        let is_border = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim_start().is_empty() || rest.starts_with(" #"));
        match documents.last_mut() {
            Some(document) if !is_border => {
                document.push_str(line);
                document.push('\n');
            }
            _ => documents.push(String::new()),
        }
    }
    let has_content = |document: &String| {
        document.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    documents.retain(has_content);
    documents
}

/// An object, or the objects of a list.
fn flatten(source: &str, object: Value, manifests: &mut Vec<Manifest>) -> ClientResult<()> {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    for (field, value) in
        [("Kind", kind.as_str()), ("apiVersion", object["apiVersion"].as_str().unwrap_or_default())]
    {
        if value.is_empty() {
            return Err(ClientError::error(format!(
                "unable to decode \"{source}\": Object '{field}' is missing in '{object}'"
            )));
        }
    }
    match object {
        Value::Object(mut members)
            if kind.ends_with("List") && members.get("items").is_some_and(Value::is_array) =>
        {
            if let Some(Value::Array(items)) = members.remove("items") {
                for item in items {
                    flatten(source, item, manifests)?;
                }
            }
            Ok(())
        }
        object => {
            manifests.push(Manifest { source: source.to_owned(), object });
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> ClientResult<Vec<String>> {
        let kind = |manifest: &Manifest| manifest.object["kind"].as_str().unwrap_or_default().to_owned();
        Ok(objects("x", text.as_bytes())?.iter().map(kind).collect())
    }

    #[test]
    fn documents_lists_and_json_become_objects() {
        let object = |kind: &str| format!("apiVersion: v1\nkind: {kind}\n");
        for (text, expected) in [
            (object("A"), vec!["A"]),
            (format!("---\n# only words\n---\n{}---\n{}", object("A"), object("B")), vec!["A", "B"]),
            (r#"{"apiVersion":"v1","kind":"A"} {"apiVersion":"v1","kind":"B"}"#.to_owned(), vec!["A", "B"]),
            (
                "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n"
                    .to_owned(),
                vec!["A", "B"],
            ),
            ("{apiVersion: v1, kind: A}\n---\n{apiVersion: v1, kind: B}\n".to_owned(), vec!["A", "B"]),
            (String::new(), vec![]),
        ] {
            assert_eq!(kinds(&text).unwrap(), expected, "{text}");
        }
        let said = kinds("apiVersion: v1\n").unwrap_err().to_string();
        assert!(said.contains("Object 'Kind' is missing"), "{said}");
        assert!(kinds("a: b: c\n").unwrap_err().to_string().contains("error converting YAML to JSON"));
    }
}
