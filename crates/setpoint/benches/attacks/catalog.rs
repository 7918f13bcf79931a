//! The attacks: the rights of the attacker, the preparations, and the requests.

use crate::{bodies, requests, scene::Scene};
use futures::future::{FutureExt, LocalBoxFuture};

type Step<Out> = for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, Out>;

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// More flags for the server; unknown ones are left out.
    pub(crate) flags: &'static [&'static str],
    /// The rules of the attacker's role.
    pub(crate) rights: &'static str,
    /// Not measured.
    pub(crate) prepare: Step<()>,
    /// Measured; returns the responses to the attacker.
    pub(crate) strike: Step<String>,
}

/// The rights of a namespace administrator.
const OBJECTS: &str = r#"[{"verbs":["*"],"apiGroups":["","apps","example.com"],"resources":["*"]}]"#;
const PATCH_ONLY: &str = r#"[{"verbs":["patch"],"apiGroups":[""],"resources":["configmaps"]}]"#;
const ROLES: &str =
    r#"[{"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"]}]"#;
const CERTIFICATES: &str = r#"[{"verbs":["create"],"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests"]}]"#;
const DEFINITIONS: &str =
    r#"[{"verbs":["*"],"apiGroups":["apiextensions.k8s.io","example.com"],"resources":["*"]}]"#;

/// An attack without preparations.
const fn attack(name: &'static str, rights: &'static str, strike: Step<String>) -> Attack {
    Attack { name, flags: &[], rights, prepare: |_| async {}.boxed_local(), strike }
}

pub(crate) const ATTACKS: &[Attack] = &[
    attack("apply creates an object with the right to patch only", PATCH_ONLY, |scene| {
        requests::apply_without_create(scene).boxed_local()
    }),
    attack("2.8 MB of nested YAML anchors", OBJECTS, |scene| bodies::nested_anchors(scene).boxed_local()),
    attack("YAML: 1 MB aliased 900 times", OBJECTS, |scene| bodies::aliases(scene).boxed_local()),
    attack("pods with managedFields nested 100 to 140 levels", OBJECTS, |scene| {
        requests::nested_managed_fields(scene).boxed_local()
    }),
    Attack {
        prepare: |scene| requests::define_things(scene).boxed_local(),
        ..attack("custom resources nested 100 to 140 levels", OBJECTS, |scene| {
            requests::nested_things(scene).boxed_local()
        })
    },
    attack("a role of 10⁸ rights that its author does not hold (3 KB)", ROLES, |scene| {
        bodies::multiplied_role(scene).boxed_local()
    }),
    attack("20,000 ownerReferences, twice at once", OBJECTS, |scene| bodies::owners(scene).boxed_local()),
    attack("20,000 container ports", OBJECTS, |scene| bodies::ports(scene).boxed_local()),
    attack("12,000 volumes, each mounted", OBJECTS, |scene| bodies::volumes(scene).boxed_local()),
    attack("20,000 topologySpreadConstraints", OBJECTS, |scene| bodies::spread(scene).boxed_local()),
    Attack {
        prepare: |scene| bodies::long_list(scene).boxed_local(),
        ..attack("JSON patch: 9,000 inserts at the head of 20,000 entries", OBJECTS, |scene| {
            bodies::inserts(scene).boxed_local()
        })
    },
    Attack {
        prepare: |scene| requests::many_maps(scene).boxed_local(),
        ..attack("40 lists of 80 MB that are not read (HTTP/2)", OBJECTS, |scene| {
            requests::unread_lists(scene).boxed_local()
        })
    },
    attack("certificate request: O=system:masters as T61String, BMPString", CERTIFICATES, |scene| {
        requests::masters_in_old_strings(scene).boxed_local()
    }),
    attack("watch with timeoutSeconds near 2⁶³", OBJECTS, |scene| {
        requests::endless_watch(scene).boxed_local()
    }),
    Attack {
        prepare: |scene| requests::pod_on_a_node(scene).boxed_local(),
        ..attack("delete with gracePeriodSeconds near 2⁶³", OBJECTS, |scene| {
            requests::endless_grace(scene).boxed_local()
        })
    },
    attack("definition with 100 patterns \\pL{300}", DEFINITIONS, |scene| {
        bodies::large_patterns(scene).boxed_local()
    }),
    Attack {
        prepare: |scene| bodies::matching_definition(scene).boxed_local(),
        ..attack("CEL: self.a.matches(self.b) with a costly b", DEFINITIONS, |scene| {
            bodies::costly_matches(scene).boxed_local()
        })
    },
    Attack {
        flags: &["--store-quota=256Mi"],
        ..attack("1,000 objects of 1 MB; a quota of 256 MiB where there is one", OBJECTS, |scene| {
            requests::fill_the_store(scene).boxed_local()
        })
    },
    attack("a continue token of the future", OBJECTS, |scene| requests::future_token(scene).boxed_local()),
];
