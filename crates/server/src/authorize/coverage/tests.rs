//! Missing rules compared with Kubernetes' algorithm, and rules too large for that.

use super::*;
use std::collections::BTreeSet;

/// Kubernetes' algorithm: each piece of one verb on one resource is compared with each held rule.
fn missing_by_pieces(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let mut missing: BTreeMap<(&str, &str, Option<&str>), Vec<&str>> = BTreeMap::new();
    let mut lines = Vec::new();
    for rule in wanted {
        let names: Vec<Option<&str>> = match rule.resource_names.is_empty() {
            true => vec![None],
            false => rule.resource_names.iter().map(|name| Some(name.as_str())).collect(),
        };
        for group in &rule.api_groups {
            for resource in &rule.resources {
                for verb in &rule.verbs {
                    for name in &names {
                        if !held.iter().any(|own| covers(own, group, resource, *name, verb)) {
                            missing.entry((group, resource, *name)).or_default().push(verb);
                        }
                    }
                }
            }
        }
        for path in &rule.paths {
            for verb in &rule.verbs {
                let is_held = held.iter().any(|own| {
                    let path_fits =
                        |own: &String| own == path || path_prefix(own).is_some_and(|it| path.starts_with(it));
                    names_value(&own.verbs, verb)
                        && own.resource_names.is_empty()
                        && own.paths.iter().any(path_fits)
                });
                if !is_held {
                    lines.push(format!(
                        "{{NonResourceURLs:{}, Verbs:{}}}",
                        quote_list(&[path]),
                        quote_list(&[verb])
                    ));
                }
            }
        }
    }
    lines.extend(missing.into_iter().map(|((group, resource, name), verbs)| {
        let names = name.map(|name| format!("ResourceNames:{}, ", quote_list(&[name]))).unwrap_or_default();
        format!(
            "{{APIGroups:{}, Resources:{}, {names}Verbs:{}}}",
            quote_list(&[group]),
            quote_list(&[resource]),
            quote_list(&verbs)
        )
    }));
    lines.sort();
    lines.dedup();
    lines
}

fn names_value(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == ALL || value == wanted)
}

fn covers(own: &Rule, group: &str, resource: &str, name: Option<&str>, verb: &str) -> bool {
    let of_any = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
    names_value(&own.verbs, verb)
        && names_value(&own.api_groups, group)
        && (names_value(&own.resources, resource) || of_any.is_some_and(|it| own.resources.contains(&it)))
        && (own.resource_names.is_empty()
            || name.is_some_and(|name| own.resource_names.iter().any(|it| it == name)))
}

/// Pseudo-random numbers, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn some(&mut self, of: &[&str], most: usize) -> Vec<String> {
        let count = self.below(most + 1);
        (0..count).map(|_| of[self.below(of.len())].to_owned()).collect()
    }

    fn rules(&mut self, most: usize) -> Vec<Rule> {
        let count = self.below(most + 1);
        let rule = |_| Rule {
            verbs: self.some(&["get", "list", "*", "create"], 3),
            api_groups: self.some(&["", "apps", "*"], 2),
            resources: self.some(&["pods", "pods/log", "*", "*/log", "deployments/log", "services"], 3),
            // Each name once: a repeated name has its verbs repeated, in another order.
            resource_names: self
                .some(&["a", "b", "*"], 3)
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            paths: self.some(&["/a", "/a/b", "/a/*", "*", "/b"], 2),
        };
        (0..count).map(rule).collect()
    }
}

#[test]
fn missing_rules_equal_those_of_kubernetes_algorithm() {
    let mut numbers = Numbers(1);
    let mut covered = 0;
    for _ in 0..5000 {
        let (held, wanted) = (numbers.rules(6), numbers.rules(3));
        let found = missing(&held, &wanted);
        covered += usize::from(found.is_empty() && !wanted.is_empty());
        assert_eq!(found, missing_by_pieces(&held, &wanted), "{held:?} {wanted:?}");
    }
    assert!(covered > 100, "{covered}");
}

fn many(word: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{word}{number}")).collect()
}

#[test]
fn rules_of_a_trillion_pieces_are_compared_quickly() {
    let list = |word: &str| many(word, 1000);
    let wanted = Rule {
        verbs: list("v"),
        api_groups: list("g"),
        resources: list("r"),
        resource_names: list("n"),
        paths: list("/p"),
    };
    let reported = missing(&[], std::slice::from_ref(&wanted));
    assert!(reported.iter().map(String::len).sum::<usize>() < 2 * MAX_REPORTED_BYTES);
    assert_eq!(reported.last().map(String::as_str), Some(AND_MORE));
    assert_eq!(missing(&Rule::everything(), std::slice::from_ref(&wanted)), Vec::<String>::new());
    // Paths have no names, so a rule with resourceNames does not cover its own paths.
    let own = Rule { paths: Vec::new(), ..wanted.clone() };
    assert!(missing(std::slice::from_ref(&own), std::slice::from_ref(&own)).is_empty());
    // Held rules that put each value of each list into its own group.
    let apart = (0..1000).map(|number| {
        let one = |word: &str| vec![format!("{word}{number}")];
        Rule { verbs: one("v"), api_groups: one("g"), resources: one("r"), ..Rule::default() }
    });
    assert!(!missing(&apart.collect::<Vec<_>>(), &[wanted]).is_empty());
}

#[test]
fn a_verb_of_a_megabyte_is_not_repeated_for_each_resource() {
    let wanted = Rule {
        verbs: vec!["v".repeat(1 << 20)],
        api_groups: many("g", 1000),
        resources: many("r", 1000),
        ..Rule::default()
    };
    let reported = missing(&[], &[wanted]);
    assert!(reported.iter().map(String::len).sum::<usize>() < 3 << 20, "{}", reported.len());
}
