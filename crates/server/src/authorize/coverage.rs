//! The rules in `wanted` that no rule in `held` covers, in the words of the rejection.
//!
//! Kubernetes breaks each wanted rule into one piece per group, resource, name and verb, and looks for a
//! held rule that covers it. The number of pieces is the product of the lists, so a small role can have
//! billions. This gives the same result without making them: values of a list that are covered by the same
//! held rules are grouped, and only one of each group is compared.

use super::rule::{ALL, Rule, path_prefix};
use api::go::quote_list;
use std::collections::{BTreeMap, HashMap};

/// Limit on the comparisons of one check. A usual role takes some hundreds, one checked against thousands
/// of held rules some ten thousand; a million take about ten milliseconds.
const MAX_COMPARISONS: usize = 1_000_000;
/// Limit on the bytes of missing rules in a rejection: about a thousand rules, more than anyone reads.
const MAX_REPORTED_BYTES: usize = 64 << 10;
const AND_MORE: &str = "... and more";

/// What `wanted` has beyond `held`: sorted lines; none where all is covered.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let index = HeldRules::new(held);
    let mut missing = UncoveredRules::default();
    let compared = wanted.iter().try_for_each(|rule| {
        index.resources_beyond(rule, &mut missing)?;
        index.paths_beyond(rule, &mut missing)
    });
    missing.lines(compared.err())
}

/// Why the list of missing rules is incomplete.
enum Cut {
    /// MAX_REPORTED_BYTES is reached.
    TooManyBytes,
    /// MAX_COMPARISONS is reached. Rules that were not compared count as missing.
    TooManyComparisons,
}

/// A set of held rules, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Rules(Box<[u64]>);

impl Rules {
    fn none(count: usize) -> Rules {
        Rules(vec![0; count.div_ceil(64)].into())
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn add(&mut self, other: &Rules) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, more)| *own |= more);
    }

    fn in_both(&self, other: &Rules) -> Rules {
        Rules(self.0.iter().zip(&other.0).map(|(left, right)| left & right).collect())
    }

    fn is_disjoint(&self, other: &Rules) -> bool {
        self.0.iter().zip(&other.0).all(|(left, right)| left & right == 0)
    }
}

/// The held rules that list a value, and those that list `*`.
struct RulesByValue<'h> {
    by_value: HashMap<&'h str, Rules>,
    all: Rules,
}

impl<'h> RulesByValue<'h> {
    fn new(held: &'h [Rule], list: impl Fn(&'h Rule) -> &'h [String]) -> RulesByValue<'h> {
        let mut named = RulesByValue { by_value: HashMap::new(), all: Rules::none(held.len()) };
        for (at, rule) in held.iter().enumerate() {
            for value in list(rule) {
                let rules = named.by_value.entry(value).or_insert_with(|| Rules::none(held.len()));
                rules.insert(at);
                if value == ALL {
                    named.all.insert(at);
                }
            }
        }
        named
    }

    /// Rules that list this value.
    fn exactly(&self, value: &str) -> Option<&Rules> {
        self.by_value.get(value)
    }

    /// Rules that list this value or `*`. A wanted `*` is covered only by `*`.
    fn covering(&self, value: &str) -> Rules {
        let mut rules = self.all.clone();
        self.exactly(value).into_iter().for_each(|more| rules.add(more));
        rules
    }
}

/// Held rules by value.
struct HeldRules<'h> {
    verbs: RulesByValue<'h>,
    groups: RulesByValue<'h>,
    resources: RulesByValue<'h>,
    names: RulesByValue<'h>,
    paths: RulesByValue<'h>,
    /// Paths that end in a star, without it.
    prefixes: Vec<(&'h str, usize)>,
    /// Rules without resourceNames, which cover all names.
    nameless: Rules,
    held: usize,
}

/// Values of a list that are covered by the same held rules.
struct Alike<'w> {
    covering: Rules,
    values: Vec<&'w str>,
    /// Their indexes in the list.
    places: Vec<usize>,
}

impl<'h> HeldRules<'h> {
    fn new(held: &'h [Rule]) -> HeldRules<'h> {
        let mut nameless = Rules::none(held.len());
        let unnamed = held.iter().enumerate().filter(|(_, rule)| rule.resource_names.is_empty());
        unnamed.for_each(|(at, _)| nameless.insert(at));
        let paths =
            held.iter().enumerate().flat_map(|(at, rule)| rule.paths.iter().map(move |path| (path, at)));
        HeldRules {
            verbs: RulesByValue::new(held, |rule| &rule.verbs),
            groups: RulesByValue::new(held, |rule| &rule.api_groups),
            resources: RulesByValue::new(held, |rule| &rule.resources),
            names: RulesByValue::new(held, |rule| &rule.resource_names),
            paths: RulesByValue::new(held, |rule| &rule.paths),
            prefixes: paths.filter_map(|(path, at)| Some((path_prefix(path)?, at))).collect(),
            nameless,
            held: held.len(),
        }
    }

    fn covering_resource(&self, resource: &str) -> Rules {
        let mut rules = self.resources.covering(resource);
        if let Some((_, subresource)) = resource.split_once('/') {
            let of_any = self.resources.exactly(&format!("*/{subresource}"));
            of_any.into_iter().for_each(|more| rules.add(more));
        }
        rules
    }

    fn covering_name(&self, name: &str) -> Rules {
        let mut rules = self.nameless.clone();
        self.names.exactly(name).into_iter().for_each(|more| rules.add(more));
        rules
    }

    fn covering_path(&self, path: &str) -> Rules {
        let mut rules = self.paths.exactly(path).cloned().unwrap_or_else(|| Rules::none(self.held));
        let prefixes = self.prefixes.iter().filter(|(prefix, _)| path.starts_with(prefix));
        prefixes.for_each(|(_, at)| rules.insert(*at));
        rules
    }

    /// The resource part of a wanted rule that no held rule covers.
    fn resources_beyond<'w>(&self, wanted: &'w Rule, missing: &mut UncoveredRules<'w>) -> Result<(), Cut> {
        let groups = alike(&wanted.api_groups, |group| self.groups.covering(group));
        let resources = alike(&wanted.resources, |resource| self.covering_resource(resource));
        let names = match wanted.resource_names.is_empty() {
            true => vec![Alike { covering: self.nameless.clone(), values: Vec::new(), places: Vec::new() }],
            false => alike(&wanted.resource_names, |name| self.covering_name(name)),
        };
        let verbs = alike(&wanted.verbs, |verb| self.verbs.covering(verb));
        for group in &groups {
            for resource in &resources {
                let rules = group.covering.in_both(&resource.covering);
                for name in &names {
                    missing.count(1 + verbs.len())?;
                    let rules = rules.in_both(&name.covering);
                    let lacking = verbs.iter().filter(|verb| verb.covering.is_disjoint(&rules));
                    let mut lacking: Vec<_> = lacking.flat_map(|verb| &verb.places).copied().collect();
                    if lacking.is_empty() {
                        continue;
                    }
                    missing.count(lacking.len())?;
                    lacking.sort_unstable();
                    let lacking: Vec<&str> =
                        lacking.into_iter().map(|at| wanted.verbs[at].as_str()).collect();
                    missing.add_resources(&group.values, &resource.values, &name.values, &lacking)?;
                }
            }
        }
        Ok(())
    }

    /// The path part of a wanted rule that no held rule covers.
    fn paths_beyond<'w>(&self, wanted: &'w Rule, missing: &mut UncoveredRules<'w>) -> Result<(), Cut> {
        let verbs = alike(&wanted.verbs, |verb| self.verbs.covering(verb));
        for path in &wanted.paths {
            missing.count(1 + self.prefixes.len() + verbs.len())?;
            let rules = self.covering_path(path).in_both(&self.nameless);
            let lacking = verbs.iter().filter(|verb| verb.covering.is_disjoint(&rules));
            for verb in lacking.flat_map(|verb| &verb.values) {
                missing.add_path(path, verb)?;
            }
        }
        Ok(())
    }
}

/// Groups the values of a list by the held rules that cover them, in their order.
fn alike<'w>(values: &'w [String], covering: impl Fn(&str) -> Rules) -> Vec<Alike<'w>> {
    let mut kinds: Vec<Alike<'w>> = Vec::new();
    let mut known: HashMap<Rules, usize> = HashMap::new();
    for (place, value) in values.iter().enumerate() {
        let covering = covering(value);
        let at = *known.entry(covering).or_insert_with_key(|covering| {
            kinds.push(Alike { covering: covering.clone(), values: Vec::new(), places: Vec::new() });
            kinds.len() - 1
        });
        kinds[at].values.push(value);
        kinds[at].places.push(place);
    }
    kinds
}

/// Rules that no held rule covers.
#[derive(Default)]
struct UncoveredRules<'w> {
    /// Verbs by group, resource and name.
    resources: BTreeMap<(&'w str, &'w str, Option<&'w str>), Vec<&'w str>>,
    /// Paths and verbs.
    paths: Vec<(&'w str, &'w str)>,
    bytes: usize,
    comparisons: usize,
}

impl<'w> UncoveredRules<'w> {
    fn count(&mut self, comparisons: usize) -> Result<(), Cut> {
        self.comparisons += comparisons;
        if self.comparisons > MAX_COMPARISONS { Err(Cut::TooManyComparisons) } else { Ok(()) }
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), Cut> {
        self.bytes += bytes;
        if self.bytes > MAX_REPORTED_BYTES { Err(Cut::TooManyBytes) } else { Ok(()) }
    }

    fn add_resources(
        &mut self,
        groups: &[&'w str],
        resources: &[&'w str],
        names: &[&'w str],
        verbs: &[&'w str],
    ) -> Result<(), Cut> {
        let nameless = names.is_empty().then_some(None);
        let length = verbs.iter().map(|verb| verb.len() + 3).sum::<usize>();
        for group in groups {
            for resource in resources {
                for name in names.iter().copied().map(Some).chain(nameless) {
                    let key_length = group.len() + resource.len() + name.map_or(0, str::len);
                    let compared = self.count_bytes(40 + key_length + length);
                    // Of a rule too long to report, only the first verb is.
                    let verbs = if compared.is_err() { &verbs[..verbs.len().min(1)] } else { verbs };
                    self.resources.entry((group, resource, name)).or_default().extend(verbs);
                    compared?;
                }
            }
        }
        Ok(())
    }

    fn add_path(&mut self, path: &'w str, verb: &'w str) -> Result<(), Cut> {
        self.paths.push((path, verb));
        self.count_bytes(40 + path.len() + verb.len())
    }

    /// The lines of a rejection: one per resource with all its verbs.
    fn lines(self, cut: Option<Cut>) -> Vec<String> {
        let of_resources = self.resources.into_iter().map(|((group, resource, name), verbs)| {
            let names =
                name.map(|name| format!("ResourceNames:{}, ", quote_list(&[name]))).unwrap_or_default();
            let (group, resource, verbs) =
                (quote_list(&[group]), quote_list(&[resource]), quote_list(&verbs));
            format!("{{APIGroups:{group}, Resources:{resource}, {names}Verbs:{verbs}}}")
        });
        let of_paths = self.paths.into_iter().map(|(path, verb)| {
            format!("{{NonResourceURLs:{}, Verbs:{}}}", quote_list(&[path]), quote_list(&[verb]))
        });
        let mut lines: Vec<_> = of_resources.chain(of_paths).collect();
        lines.sort();
        lines.dedup();
        match cut {
            None => {}
            Some(Cut::TooManyBytes) => lines.push(AND_MORE.to_owned()),
            Some(Cut::TooManyComparisons) => {
                lines.push("rules that are too many to compare with those held".to_owned());
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
