//! Normalizes YAML as text.

use super::MADE_BY_SERVER;

/// The same as [`super::order::sort_managers`] for objects in YAML: an entry is the lines from `- ` to the next one.
pub(super) fn sort_managers(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push(line);
        let Some(indent) = line.strip_suffix("managedFields:") else { continue };
        let indent = " ".repeat(indent.len());
        let mut entries: Vec<Vec<&str>> = Vec::new();
        while let Some(line) = lines.peek().and_then(|line| line.strip_prefix(indent.as_str())) {
            match entries.last_mut() {
                _ if line.starts_with("- ") => entries.push(Vec::new()),
                Some(_) if line.starts_with(' ') => {}
                _ => break,
            }
            if let (Some(entry), Some(line)) = (entries.last_mut(), lines.next()) {
                entry.push(line);
            }
        }
        let is_time = |line: &&str| line.trim_start().starts_with("time: ");
        entries.sort_by_cached_key(|entry| {
            entry.iter().filter(|line| !is_time(line)).copied().collect::<String>()
        });
        out.extend(entries.into_iter().flatten());
    }
    out.join("\n") + "\n"
}

/// A list in YAML without the objects that the server creates.
pub(super) fn without_made_items(text: &str) -> String {
    let is_made =
        |item: &&str| MADE_BY_SERVER.iter().any(|(_, name)| item.contains(&format!("\n    name: {name}\n")));
    let items: Vec<_> = text.split("\n- ").filter(|item| !is_made(item)).collect();
    items.join("\n- ")
}
