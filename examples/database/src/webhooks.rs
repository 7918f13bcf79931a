//! Defaults, rules and conversions of databases. Rules about one field are in the type; this is the rest.

use crate::{NAME, v1, v1beta1};
use operator::webhook::{
    Address, Certificates, Change, Conversion, Hook, Request, Review, Site, Verdict, Webhooks,
};

/// A single replica cannot be replaced without a gap.
const SAFE_REPLICAS: i32 = 2;

pub fn webhooks() -> Webhooks {
    Webhooks::new(NAME)
        .hook(Hook::defaulter(|database: &mut v1::Database, _: &Request| {
            database.spec.storage_gib.get_or_insert(v1::DEFAULT_STORAGE_GIB);
            database.spec.replicas.get_or_insert(v1::DEFAULT_REPLICAS);
        }))
        .hook(Hook::validator(|review: Review<v1::Database>| async move { judge(&review.change) }))
        .conversion(Conversion::through::<v1::Database>().spoke::<v1beta1::Database>())
}

fn judge(change: &Change<v1::Database>) -> Verdict {
    if let Change::Update { old, new } = change
        && new.spec.storage() < old.spec.storage()
    {
        let (before, after) = (old.spec.storage(), new.spec.storage());
        return Verdict::deny(format!("storage cannot shrink from {before} to {after} GiB"));
    }
    match change.after() {
        Some(database) if database.spec.replicas() < SAFE_REPLICAS => {
            Verdict::allow().warn("with fewer than two replicas, an upgrade is an outage")
        }
        _ => Verdict::allow(),
    }
}

/// Where the API server finds the webhooks, and the Secret in which replicas share their certificate.
pub fn site(address: Address) -> Site {
    let (namespace, secret) = ("default".to_owned(), "database-webhooks".to_owned());
    Site { address, certificates: Certificates::Shared { namespace, secret } }
}
