//! The rules for names of projects, domains, groups, versions and kinds, and the names that follow from a kind.

use anyhow::{Result, bail};
use api::name::Format;

/// Rust: no module can have these names.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];
/// The modules that every project has.
const OWN_MODULES: &[&str] = &["settings", "main"];
/// Types that the generated code uses beside those of the kind.
const USED_TYPES: &[&str] = &[
    "BoxError",
    "Change",
    "Clone",
    "Condition",
    "ConfigMap",
    "Context",
    "Controller",
    "CustomResource",
    "CustomResourceDefinition",
    "Debug",
    "Default",
    "Deserialize",
    "Failure",
    "Force",
    "Hook",
    "Hub",
    "JsonSchema",
    "Key",
    "KubeSchema",
    "Manager",
    "Next",
    "Option",
    "PartialEq",
    "Report",
    "Request",
    "ResourceExt",
    "Result",
    "Review",
    "Self",
    "Serialize",
    "Set",
    "Spoke",
    "String",
    "Vec",
    "Verdict",
    "Webhooks",
];
/// Crates that a project depends on, or that Rust brings along: a project cannot have their names.
const USED_CRATES: &[&str] = &[
    "alloc",
    "core",
    "k8s-openapi",
    "kube",
    "operator",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "testkit",
    "tokio",
    "tracing-subscriber",
];
/// Kubernetes: the longest name of most objects that are also host names.
const MAX_NAME: usize = 40;

/// The name of a project: also of its Deployment, its service account and its crate.
pub(crate) fn check_project(name: &str) -> Result<()> {
    let rule =
        "a project has a name of lower-case letters, digits and dashes that begins with a letter, as `shop`";
    if !Format::Dns1035Label.problems(name).is_empty() || name.len() > MAX_NAME {
        bail!("{name:?} cannot be the name of a project: {rule} (at most {MAX_NAME} characters)");
    }
    if USED_CRATES.contains(&name) || KEYWORDS.contains(&name) {
        bail!("{name:?} is the name of a crate or of a word of Rust: take another one, as `{name}-operator`");
    }
    Ok(())
}

/// The domain at the end of all API groups of a project.
pub(crate) fn check_domain(domain: &str) -> Result<()> {
    if !Format::Dns1123Subdomain.problems(domain).is_empty() || !domain.contains('.') {
        bail!(
            "{domain:?} is no domain: write lower-case words with dots between them, as `--domain acme.io`"
        );
    }
    for protected in ["k8s.io", "kubernetes.io"] {
        if domain == protected || domain.ends_with(&format!(".{protected}")) {
            bail!("the domain {domain:?} belongs to Kubernetes: take one of your own, as `--domain acme.io`");
        }
    }
    Ok(())
}

/// The first part of an API group; the domain of the project follows.
pub(crate) fn check_group(group: &str) -> Result<()> {
    if !Format::Dns1123Subdomain.problems(group).is_empty() {
        bail!("{group:?} cannot be a group: write lower-case letters, digits and dashes, as `--group cache`");
    }
    Ok(())
}

/// Kubernetes: versions that are compared by their age have this form.
pub(crate) fn check_version(version: &str) -> Result<()> {
    let is_number =
        |text: &str| !text.starts_with('0') && !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_version = version.strip_prefix('v').is_some_and(|rest| {
        let (major, minor) = match rest.find(['a', 'b']) {
            Some(at) => rest.split_at(at),
            None => (rest, "alpha1"),
        };
        let minor = minor.strip_prefix("alpha").or_else(|| minor.strip_prefix("beta"));
        is_number(major) && minor.is_some_and(is_number)
    });
    if !is_version || version.len() > MAX_NAME {
        bail!(
            "{version:?} cannot be a version: write `v1`, `v1beta1` or `v1alpha1`, with any numbers from 1 on"
        );
    }
    Ok(())
}

/// The name of a type: one word in CamelCase.
pub(crate) fn check_kind(kind: &str) -> Result<()> {
    let is_camel = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.bytes().all(|it| it.is_ascii_alphanumeric());
    if !is_camel || kind.len() > MAX_NAME {
        bail!(
            "{kind:?} cannot be a kind: write one word in CamelCase, letters and digits only, as `--kind RedisCluster`"
        );
    }
    if USED_TYPES.contains(&kind) {
        bail!("the generated code uses a type {kind:?} already: take a longer word, as `--kind Cache{kind}`");
    }
    Ok(())
}

/// Kubernetes: the word in URLs and RBAC rules.
pub(crate) fn check_plural(plural: &str) -> Result<()> {
    if !Format::Dns1035Label.problems(plural).is_empty() {
        bail!("{plural:?} cannot be a plural: write one lower-case word, as `--plural redises`");
    }
    Ok(())
}

/// The usual English plural, in lower case.
pub(crate) fn plural(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    let is_vowel = |letter: char| "aeiou".contains(letter);
    let before_last = word.chars().rev().nth(1);
    match word.chars().last() {
        Some('y') if before_last.is_some_and(|letter| !is_vowel(letter)) => {
            format!("{}ies", &word[..word.len() - 1])
        }
        Some('s' | 'x' | 'z') => format!("{word}es"),
        Some('h') if matches!(before_last, Some('c' | 's')) => format!("{word}es"),
        _ => format!("{word}s"),
    }
}

/// The words of a kind with underscores between them: `HTTPProxy` is `http_proxy`.
pub(crate) fn snake(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let follows_small = at > 0 && !letters[at - 1].is_ascii_uppercase();
        let precedes_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if letter.is_ascii_uppercase() && at > 0 && (follows_small || precedes_small) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The Rust module of a kind.
pub(crate) fn module(kind: &str) -> String {
    let snake = snake(kind);
    let is_taken = KEYWORDS.contains(&snake.as_str()) || OWN_MODULES.contains(&snake.as_str());
    if is_taken { format!("{snake}_kind") } else { snake }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_a_plural_and_a_module() {
        for (kind, expected) in [
            ("Redis", ("redises", "redis", "redis")),
            ("RedisCluster", ("redisclusters", "redis_cluster", "redis_cluster")),
            ("HTTPProxy", ("httpproxies", "http_proxy", "http_proxy")),
            ("S3Bucket", ("s3buckets", "s3_bucket", "s3_bucket")),
            ("Gateway", ("gateways", "gateway", "gateway")),
            ("Policy", ("policies", "policy", "policy")),
            ("Box", ("boxes", "box", "box_kind")),
            ("Batch", ("batches", "batch", "batch")),
            ("Type", ("types", "type", "type_kind")),
            ("Settings", ("settingses", "settings", "settings_kind")),
        ] {
            let found = (plural(kind), snake(kind), module(kind));
            assert_eq!((found.0.as_str(), found.1.as_str(), found.2.as_str()), expected, "{kind}");
        }
    }

    #[test]
    fn names_that_break_a_rule_are_refused_with_an_example() {
        type Rule = fn(&str) -> Result<()>;
        let rules: [(Rule, &[&str], &[&str], &str); 6] = [
            (check_project, &["shop", "shop-2"], &["Shop", "2shop", "", "a_b", "kube", "match"], "as `"),
            (
                check_domain,
                &["acme.io", "a.b.example"],
                &["acme", "Acme.io", "x.k8s.io", "k8s.io", ""],
                "acme.io",
            ),
            (check_group, &["cache", "a.b"], &["", "Cache", "cache_x"], "--group cache"),
            (
                check_version,
                &["v1", "v12", "v1alpha1", "v2beta10"],
                &["", "1", "v", "v0", "v1alpha", "v1alpha0", "v1gamma1", "V1", "v1alpha1beta1"],
                "v1alpha1",
            ),
            (check_kind, &["Redis", "S3Bucket"], &["redis", "", "My-Kind", "Ärger", "ConfigMap"], "--kind"),
            (check_plural, &["redises"], &["Redises", "", "a.b"], "--plural"),
        ];
        for (rule, good, bad, example) in rules {
            for name in good {
                assert!(rule(name).is_ok(), "{name}");
            }
            for name in bad {
                let problem = rule(name).expect_err(name).to_string();
                assert!(problem.contains(example), "{problem}");
            }
        }
    }
}
