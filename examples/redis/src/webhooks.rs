//! Defaults and rules of caches. Rules about one field are in the type; this is what needs code.

use crate::{
    NAME, NAMESPACE,
    v1alpha1::{DEFAULT_MEMORY_MIB, DEFAULT_SIZE, DEFAULT_VERSION, Redis},
};
use operator::webhook::{Address, Certificates, Change, Hook, Request, Review, Site, Verdict, Webhooks};

pub fn webhooks() -> Webhooks {
    Webhooks::new(NAME)
        .hook(Hook::defaulter(|redis: &mut Redis, _: &Request| {
            redis.spec.size.get_or_insert(DEFAULT_SIZE);
            redis.spec.memory_mib.get_or_insert(DEFAULT_MEMORY_MIB);
            // Written down, so that an operator with another default does not restart this cache.
            redis.spec.version.get_or_insert_with(|| DEFAULT_VERSION.to_owned());
        }))
        .hook(Hook::validator(|review: Review<Redis>| async move { judge(&review.change) }))
}

/// Where the API server finds the webhooks, and the Secret in which replicas share their certificate.
pub fn site(address: Address) -> Site {
    let (namespace, secret) = (NAMESPACE.to_owned(), format!("{NAME}-webhooks"));
    Site { address, certificates: Certificates::Shared { namespace, secret } }
}

fn judge(change: &Change<Redis>) -> Verdict {
    let Change::Update { old, new } = change else { return Verdict::allow() };
    let (before, after) = (old.spec.version(), new.spec.version());
    if number(after) < number(before) {
        return Verdict::deny(format!(
            "the version cannot go from {before} back to {after}: clients may use commands that {after} lacks"
        ));
    }
    let (before, after) = (old.spec.size(), new.spec.size());
    match after < before {
        true => Verdict::allow().warn(format!("{} of {before} members go, with their keys", before - after)),
        false => Verdict::allow(),
    }
}

/// A version as numbers: 8.10 is newer than 8.9.
fn number(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::RedisSpec;

    #[test]
    fn a_version_does_not_go_back_and_lost_members_are_warned_of() {
        let redis = |version: &str, size| {
            let (version, size) = (Some(version.to_owned()), Some(size));
            Redis::new("web", RedisSpec { version, size, ..RedisSpec::default() })
        };
        let shrinks = Verdict::allow().warn("1 of 3 members go, with their keys");
        for (old, new, expected) in [
            (redis("8.9", 3), redis("8.10", 3), Some(Verdict::allow())),
            (redis("8.2", 3), redis("8.2", 4), Some(Verdict::allow())),
            (redis("8.2", 3), redis("8.2", 2), Some(shrinks)),
            (redis("8.10", 3), redis("8.9", 3), None),
            (redis("8.0", 3), redis("7.4", 3), None),
        ] {
            let verdict = judge(&Change::Update { old, new });
            match expected {
                Some(expected) => assert_eq!(verdict, expected),
                None => assert!(!verdict.is_allowed()),
            }
        }
    }
}
