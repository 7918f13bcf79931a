//! `--controllers`: parses the list of controllers to run.

mod names;

use super::control_loops::SCHEDULER;
use names::{ALIASES, KNOWN, ON_REQUEST};
use std::str::FromStr;

/// One word of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// An empty word. Kubernetes: a list of nothing else runs no controllers.
    None,
    /// `*`: all but those that must be named explicitly.
    All,
    With(&'static str),
    /// `-name`
    Without(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown(String);

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Kubernetes: the text of kube-controller-manager.
        write!(f, "{:?} is not in the list of known controllers", self.0)
    }
}

impl std::error::Error for Unknown {}

impl FromStr for Choice {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Choice, Unknown> {
        match text {
            "" => return Ok(Choice::None),
            "*" => return Ok(Choice::All),
            _ => {}
        }
        let word = text.strip_prefix('-').unwrap_or(text);
        let name = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
        let known = KNOWN.iter().find(|known| **known == name).ok_or_else(|| Unknown(word.to_owned()))?;
        Ok(if word == text { Choice::With(known) } else { Choice::Without(known) })
    }
}

/// The controllers to run. A name has precedence over the star, and the first entry for a controller decides.
pub(crate) fn chosen(choices: &[Choice]) -> impl Iterator<Item = &'static str> {
    let is_chosen = |name: &&'static str| {
        let said = choices.iter().find_map(|choice| match choice {
            Choice::With(it) if it == name => Some(true),
            Choice::Without(it) if it == name => Some(false),
            _ => None,
        });
        said.unwrap_or_else(|| choices.contains(&Choice::All) && !ON_REQUEST.contains(name))
    };
    KNOWN.into_iter().filter(is_chosen)
}

/// Logs why controllers that are asked for by name do not run here.
pub(crate) fn warn_of_absent(choices: &[Choice]) {
    for (controller, reason) in absent(choices) {
        tracing::warn!(controller, reason, "this controller does not run here");
    }
}

/// The controllers that are asked for by name and have no control loop here, each with the reason.
fn absent(choices: &[Choice]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let named = KNOWN.into_iter().filter(|name| choices.contains(&Choice::With(name)));
    named.filter(|name| !has_loop(name)).map(|name| (name, names::why_absent(name)))
}

pub(crate) fn has_loop(name: &str) -> bool {
    name == SCHEDULER || ::controllers::ALL.iter().any(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_controllers_run() {
        for (list, name, expected) in [
            ("*", "deployment-controller", true),
            ("*", "token-cleaner-controller", false),
            ("*,token-cleaner-controller", "token-cleaner-controller", true),
            ("*,-deployment-controller", "deployment-controller", false),
            ("-deployment-controller,*", "deployment-controller", false),
            ("-deployment-controller,*", "job-controller", true),
            ("job-controller", "job-controller", true),
            ("job-controller", "deployment-controller", false),
            ("-job-controller", "deployment-controller", false),
            ("", "deployment-controller", false),
            ("job-controller,-job-controller", "job-controller", true),
        ] {
            let choices: Vec<Choice> = list.split(',').map(|word| word.parse().unwrap()).collect();
            assert_eq!(chosen(&choices).any(|it| it == name), expected, "{list} {name}");
        }
    }

    #[test]
    fn every_control_loop_can_be_named_and_runs_by_default_as_in_kubernetes() {
        for it in ::controllers::ALL {
            assert!(KNOWN.contains(&it.name), "{}", it.name);
            assert_eq!(it.is_on_request, ON_REQUEST.contains(&it.name), "{}", it.name);
        }
        assert!(KNOWN.is_sorted());
        for (alias, name) in ALIASES {
            assert!(KNOWN.contains(&name) && !KNOWN.contains(&alias), "{alias}");
        }
    }

    #[test]
    fn the_former_names_of_controllers_stand_for_the_present_ones() {
        for (word, expected) in [
            ("csrsigning", Choice::With("certificatesigningrequest-signing-controller")),
            ("-deployment", Choice::Without("deployment-controller")),
            ("resource-claim-controller", Choice::With("resourceclaim-controller")),
        ] {
            assert_eq!(word.parse(), Ok(expected));
        }
    }

    #[test]
    fn a_known_name_without_a_control_loop_is_accepted_and_explained() {
        let choices = |list: &str| list.split(',').map(|word| word.parse().unwrap()).collect::<Vec<Choice>>();
        assert_eq!(absent(&choices("*,-resourcequota-controller")).count(), 0);
        let named = choices("*,resourcequota-controller,job-controller,svm,node-route-controller");
        let found: Vec<_> = absent(&named).collect();
        assert_eq!(
            found,
            [
                ("node-route-controller", "it needs a cloud provider"),
                ("resourcequota-controller", "the API server counts what quotas limit in each request"),
                ("storage-version-migrator-controller", "its API is not served"),
            ]
        );
    }

    #[test]
    fn unknown_names_are_refused() {
        for (word, unknown) in [("-red", "red"), ("red", "red"), ("**", "**"), ("-*", "*")] {
            let problem = word.parse::<Choice>().unwrap_err().to_string();
            assert_eq!(problem, format!("{unknown:?} is not in the list of known controllers"));
        }
    }
}
