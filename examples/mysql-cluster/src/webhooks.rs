//! Defaults and rules of clusters. Rules about one field are in the type; this is what needs code.

use crate::{
    NAME,
    v1::{DeletionPolicy, MySQLCluster, number},
};
use kube::ResourceExt;
use operator::webhook::{
    Address, Certificates, Change, Hook, Operation, Request, Review, Site, Verdict, Webhooks,
};

pub fn webhooks() -> Webhooks {
    let operations = [Operation::Create, Operation::Update, Operation::Delete];
    let validator = Hook::validator(|review: Review<MySQLCluster>| async move { judge(&review.change) });
    Webhooks::new(NAME).hook(Hook::defaulter(set_defaults)).hook(validator.on(&operations))
}

/// Where the API server finds the webhooks, and the Secret in which replicas share their certificate.
pub fn site(namespace: &str) -> Site {
    let (namespace, secret) = (namespace.to_owned(), format!("{NAME}-webhooks"));
    Site {
        address: Address::service(&namespace, NAME),
        certificates: Certificates::Shared { namespace, secret },
    }
}

/// Defaults that depend on the name, which no schema can say.
fn set_defaults(cluster: &mut MySQLCluster, _: &Request) {
    let name = cluster.name_any();
    if name.is_empty() {
        return; // The server generates it later.
    }
    cluster.spec.root_secret = Some(cluster.root_secret());
    if let Some(backup) = &mut cluster.spec.backup {
        backup.schedule = Some(backup.schedule(&name));
    }
}

fn judge(change: &Change<MySQLCluster>) -> Verdict {
    match change {
        Change::Create(new) => caution(new),
        Change::Update { old, new } => match refusal(old, new) {
            Some(reason) => Verdict::deny(reason),
            None => caution(new),
        },
        Change::Delete(old) if old.spec.deletion_policy == DeletionPolicy::Refuse => {
            Verdict::deny("the deletionPolicy is Refuse: set it to Backup or Delete first")
        }
        Change::Delete(_) => Verdict::allow(),
    }
}

fn refusal(old: &MySQLCluster, new: &MySQLCluster) -> Option<String> {
    // An upgrade that was never complete may be taken back.
    let (least, wanted) = (old.complete_version().unwrap_or(&old.spec.version), &new.spec.version);
    if number(wanted) < number(least) {
        return Some(format!(
            "the version cannot go from {least} back to {wanted}: the data have its format"
        ));
    }
    let (before, after) = (&old.spec.storage, &new.spec.storage);
    if after.quantity() < before.quantity() {
        return Some(format!("storage cannot shrink from {} to {}", before.size, after.size));
    }
    (after.storage_class != before.storage_class).then(|| "volumes cannot change their class".to_owned())
}

fn caution(cluster: &MySQLCluster) -> Verdict {
    match cluster.spec.replicas {
        1 => Verdict::allow().warn("with one member, an upgrade is an outage, and a failure too"),
        _ => Verdict::allow(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::cluster;

    #[test]
    fn versions_and_volumes_do_not_go_back() {
        for (complete, version, size, class, expected) in [
            (None, "8.4.10", "1Gi", None, None),
            (None, "8.4.8", "1Gi", None, Some("from 8.4.9 back to 8.4.8")),
            (Some("8.4.9"), "9.0.0", "2Gi", None, None),
            (Some("8.4.9"), "8.4.9", "1000Mi", None, Some("from 1Gi to 1000Mi")),
            (Some("8.4.9"), "8.4.9", "1Gi", Some("fast"), Some("cannot change their class")),
            // It was on its way to 8.4.9.
            (Some("8.4.7"), "8.4.7", "1Gi", None, None),
            (Some("8.4.7"), "8.4.6", "1Gi", None, Some("from 8.4.7 back to 8.4.6")),
        ] {
            let old = cluster("8.4.9", 3, complete, None);
            let mut new = old.clone();
            new.spec.version = version.to_owned();
            new.spec.storage.size = size.to_owned();
            new.spec.storage.storage_class = class.map(str::to_owned);
            let refusal = refusal(&old, &new);
            let is_expected = match (&refusal, expected) {
                (Some(refusal), Some(expected)) => refusal.contains(expected),
                (refusal, expected) => refusal.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{version} {size}: {refusal:?}");
        }
    }

    #[test]
    fn a_cluster_that_refuses_stays() {
        let mut cluster = cluster("8.4.9", 3, None, None);
        assert!(judge(&Change::Delete(cluster.clone())).is_allowed());
        cluster.spec.deletion_policy = DeletionPolicy::Refuse;
        assert!(!judge(&Change::Delete(cluster)).is_allowed());
    }
}
