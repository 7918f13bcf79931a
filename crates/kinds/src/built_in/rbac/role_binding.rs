//! RoleBinding and ClusterRoleBinding: who may do what a role says.

use api::field::{Error, ErrorList};
use api::name::{Format, NameRule};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, TableColumn, string};
use crate::cells::row::{Row, text};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static ROLE_BINDING: BuiltIn = BuiltIn::new(GROUP, "RoleBinding", "rolebindings")
    .older_versions(&["v1alpha1", "v1beta1"])
    .strategy(Strategy::PLAIN.named(NameRule::PathSegment).allow_create_on_update())
    .validation(
        Validation::new(check)
            .update(UpdateChecks::AS_NEW.compare(check_same_role))
            .named(NameRule::PathSegment),
    )
    .defaults(&[
        TypeDefaults::of("rbac.v1.RoleRef").values(&[("apiGroup", DefaultValue::Text(GROUP))]),
        TypeDefaults::of("rbac.v1.Subject").rule(default_subject),
    ])
    .columns(COLUMNS);

pub(crate) static CLUSTER_ROLE_BINDING: BuiltIn =
    BuiltIn::new(GROUP, "ClusterRoleBinding", "clusterrolebindings")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(Strategy::PLAIN.named(NameRule::PathSegment).allow_create_on_update())
        .validation(
            Validation::new(check_cluster_role_binding)
                .update(UpdateChecks::AS_NEW.compare(check_same_role))
                .named(NameRule::PathSegment),
        )
        .columns(COLUMNS);

const COLUMNS: &[TableColumn] = &[
    NAME,
    string(
        "Role",
        Cell::Computed(|it| format!("{}/{}", it.text("/roleRef/kind"), it.text("/roleRef/name")).into()),
    ),
    AGE,
    string("Users", Cell::Computed(|it| subjects(it, "User").into())).wide(),
    string("Groups", Cell::Computed(|it| subjects(it, "Group").into())).wide(),
    string("ServiceAccounts", Cell::Computed(|it| service_accounts(it).into())).wide(),
];

fn check(binding: &At<'_, '_>, errors: &mut ErrorList) {
    check_binding(binding, &["Role", "ClusterRole"], errors);
}

fn check_cluster_role_binding(binding: &At<'_, '_>, errors: &mut ErrorList) {
    check_binding(binding, &["ClusterRole"], errors);
}

fn check_binding(binding: &At<'_, '_>, kinds: &[&str], errors: &mut ErrorList) {
    let role = binding.field("roleRef");
    role.field("apiGroup").one_of(errors, &[GROUP]);
    role.field("kind").one_of(errors, kinds);
    role.field("name").required_format(errors, Format::PathSegment);
    let is_namespaced = kinds.contains(&"Role");
    let subjects = binding.field("subjects");
    for subject in subjects.items() {
        let (name, group, kind) = (subject.field("name"), subject.field("apiGroup"), subject.field("kind"));
        if name.text().is_empty() {
            name.required(errors, "");
        }
        match kind.text() {
            "ServiceAccount" => {
                if !name.text().is_empty() {
                    name.is_format(errors, Format::Dns1123Subdomain);
                }
                if !group.text().is_empty() {
                    group.unsupported(errors, &[""]);
                }
                if !is_namespaced && subject.text_of("namespace").is_empty() {
                    subject.field("namespace").required(errors, "");
                }
            }
            "User" | "Group" => group.one_of(errors, &[GROUP]),
            _ => kind.unsupported(errors, &["ServiceAccount", "User", "Group"]),
        }
    }
}

fn check_same_role(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let role = new.field("roleRef");
    if role.value() != old.field("roleRef").value() {
        let shown = internal::shown("io.k8s.api.rbac.v1.RoleRef", role.value());
        errors.push(Error::invalid(role.path(), shown, "cannot change roleRef"));
    }
}

fn default_subject(subject: &mut Members) {
    if matches!(member::text(subject, "kind"), "User" | "Group") {
        member::default_to(subject, "apiGroup", GROUP);
    }
}

fn subjects(binding: &Row<'_>, kind: &str) -> String {
    let subjects = binding.items("/subjects").iter().filter(|it| it["kind"] == kind);
    subjects.map(|it| text(&it["name"])).collect::<Vec<_>>().join(", ")
}

fn service_accounts(binding: &Row<'_>) -> String {
    let accounts = binding.items("/subjects").iter().filter(|it| it["kind"] == "ServiceAccount");
    let names = accounts.map(|it| format!("{}/{}", text(&it["namespace"]), text(&it["name"])));
    names.collect::<Vec<_>>().join(", ")
}
