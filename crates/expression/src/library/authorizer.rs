//! `authorizer.group('').resource('pods').check('get').allowed()`: authorization checks in expressions.

use std::{fmt, sync::Arc};

use api::name::NameRule;

use super::{Argument, CallEstimate, Function, Library, Outcome, Overload, charge};
use crate::{
    cost::{LIST_CREATE, Range, STRING_TRAVERSAL, STRUCT_CREATE},
    error::Error,
    ty::Type,
    value::{Opaque, Value},
};

/// Answers authorization checks of expressions. The server implements it for the caller of a request.
pub trait Authorizer: fmt::Debug + Send + Sync {
    fn authorize(&self, question: &Question<'_>) -> Decision;
}

/// Whether a subject may use a verb on a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'q> {
    pub subject: &'q Subject,
    pub verb: &'q str,
    pub target: Target<'q>,
}

/// The user of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The caller of the request.
    Caller,
    ServiceAccount {
        namespace: String,
        name: String,
    },
}

/// The target of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'q> {
    /// A non-resource path.
    Path(&'q str),
    Resource(&'q Resource),
}

/// A resource; empty fields are not part of the check. The version is always `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Unparsed: a selector that does not parse does not restrict the check.
    pub field_selector: String,
    pub label_selector: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}

const AUTHORIZER: Type = Type::Opaque("kubernetes.authorization.Authorizer");
const PATH_CHECK: Type = Type::Opaque("kubernetes.authorization.PathCheck");
const GROUP_CHECK: Type = Type::Opaque("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: Type = Type::Opaque("kubernetes.authorization.ResourceCheck");
const DECISION: Type = Type::Opaque("kubernetes.authorization.Decision");

/// The type of the variable `authorizer`.
pub fn authorizer_type() -> Type {
    AUTHORIZER
}

/// The type of the variable `authorizer.requestResource`.
pub fn resource_check_type() -> Type {
    RESOURCE_CHECK
}

/// The value of the variable `authorizer`.
pub fn authorizer_value(authorizer: Arc<dyn Authorizer>) -> Value<'static> {
    Value::opaque(SubjectAuthorizer { authorizer, subject: Subject::Caller })
}

/// The value of the variable `authorizer.requestResource`.
pub fn resource_check_value(authorizer: Arc<dyn Authorizer>, resource: Resource) -> Value<'static> {
    Value::opaque(ResourceCheck {
        as_subject: SubjectAuthorizer { authorizer, subject: Subject::Caller },
        resource,
    })
}

/// The CEL variable `authorizer`: the caller, or a service account, whose access `check()` asks the authorizer about.
#[derive(Clone, Debug)]
struct SubjectAuthorizer {
    authorizer: Arc<dyn Authorizer>,
    subject: Subject,
}

#[derive(Debug)]
struct PathCheck {
    as_subject: SubjectAuthorizer,
    path: String,
}

#[derive(Debug)]
struct GroupCheck {
    as_subject: SubjectAuthorizer,
    group: String,
}

#[derive(Clone, Debug)]
struct ResourceCheck {
    as_subject: SubjectAuthorizer,
    resource: Resource,
}

// Kubernetes: no two of these are equal.
macro_rules! opaque {
    ($($name:ident $ty:ident),*) => {$(
        impl Opaque for $name {
            fn ty(&self) -> Type {
                $ty
            }

            fn equals(&self, _: &dyn Opaque) -> bool {
                false
            }
        }
    )*};
}

opaque!(
    SubjectAuthorizer AUTHORIZER, PathCheck PATH_CHECK, GroupCheck GROUP_CHECK, ResourceCheck RESOURCE_CHECK, Decision DECISION
);

pub(crate) fn library() -> Library {
    let step = |name, id, from, result, body| {
        Function::new(name, vec![Overload::member(id, vec![from, Type::String], result, body)])
    };
    let check = |id, from, body| {
        Overload::member(id, vec![from, Type::String], DECISION, body)
            .costs(check_cost)
            .estimated(check_estimate)
    };
    let narrow = |name, id, body| {
        let overload = Overload::member(id, vec![RESOURCE_CHECK, Type::String], RESOURCE_CHECK, body);
        Function::new(name, vec![overload.costs(selector_cost).estimated(selector_estimate)])
    };
    let ask = |name, id, result, body| {
        Function::new(name, vec![Overload::member(id, vec![DECISION], result, body)])
    };
    let service_account = Overload::member(
        "authorizer_serviceaccount",
        vec![AUTHORIZER, Type::String, Type::String],
        AUTHORIZER,
        service_account,
    );
    Library {
        functions: vec![
            step("path", "authorizer_path", AUTHORIZER, PATH_CHECK, path),
            step("group", "authorizer_group", AUTHORIZER, GROUP_CHECK, group),
            Function::new("serviceAccount", vec![service_account]),
            step("resource", "groupcheck_resource", GROUP_CHECK, RESOURCE_CHECK, resource),
            step("subresource", "resourcecheck_subresource", RESOURCE_CHECK, RESOURCE_CHECK, subresource),
            step("namespace", "resourcecheck_namespace", RESOURCE_CHECK, RESOURCE_CHECK, namespace),
            step("name", "resourcecheck_name", RESOURCE_CHECK, RESOURCE_CHECK, name),
            narrow("fieldSelector", "authorizer_fieldselector", field_selector),
            narrow("labelSelector", "authorizer_labelselector", label_selector),
            Function::new(
                "check",
                vec![
                    check("pathcheck_check", PATH_CHECK, check_path),
                    check("resourcecheck_check", RESOURCE_CHECK, check_resource),
                ],
            ),
            ask("allowed", "decision_allowed", Type::Bool, allowed),
            ask("reason", "decision_reason", Type::String, reason),
            ask("errored", "decision_errored", Type::Bool, errored),
            ask("error", "decision_error", Type::String, error),
        ],
        ..Library::default()
    }
}

fn receiver<'v, T: Opaque>(args: &'v [Value<'_>]) -> Result<&'v T, Error> {
    args.first().and_then(Value::as_opaque).ok_or_else(Error::no_such_overload)
}

fn text<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v str, Error> {
    args.get(index).and_then(Value::as_str).ok_or_else(Error::no_such_overload)
}

fn path<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let path = text(args, 1)?;
    if path.trim().is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    Ok(Value::opaque(PathCheck {
        as_subject: receiver::<SubjectAuthorizer>(args)?.clone(),
        path: path.to_owned(),
    }))
}

fn group<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let group = text(args, 1)?.to_owned();
    Ok(Value::opaque(GroupCheck { as_subject: receiver::<SubjectAuthorizer>(args)?.clone(), group }))
}

fn service_account<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (namespace, name) = (text(args, 1)?, text(args, 2)?);
    if !NameRule::DnsSubdomain.problems(name).is_empty() {
        return Err(Error::new("Invalid service account name"));
    }
    if !NameRule::DnsLabel.problems(namespace).is_empty() {
        return Err(Error::new("Invalid service account namespace"));
    }
    let authorizer = receiver::<SubjectAuthorizer>(args)?.authorizer.clone();
    let subject = Subject::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() };
    Ok(Value::opaque(SubjectAuthorizer { authorizer, subject }))
}

fn resource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let GroupCheck { as_subject, group } = receiver(args)?;
    let resource = text(args, 1)?;
    if resource.trim().is_empty() {
        return Err(Error::new("resource must not be empty"));
    }
    let resource = Resource { group: group.clone(), resource: resource.to_owned(), ..Resource::default() };
    Ok(Value::opaque(ResourceCheck { as_subject: as_subject.clone(), resource }))
}

/// The same check with one field set to the argument.
fn with<'a>(args: &[Value<'a>], field: fn(&mut Resource) -> &mut String) -> Outcome<'a> {
    let mut check = receiver::<ResourceCheck>(args)?.clone();
    *field(&mut check.resource) = text(args, 1)?.to_owned();
    Ok(Value::opaque(check))
}

fn subresource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    with(args, |resource| &mut resource.subresource)
}

fn namespace<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    with(args, |resource| &mut resource.namespace)
}

fn name<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    with(args, |resource| &mut resource.name)
}

fn field_selector<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    with(args, |resource| &mut resource.field_selector)
}

fn label_selector<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    with(args, |resource| &mut resource.label_selector)
}

impl SubjectAuthorizer {
    fn check<'a>(&self, verb: &str, target: Target<'_>) -> Outcome<'a> {
        let question = Question { subject: &self.subject, verb, target };
        Ok(Value::opaque(self.authorizer.authorize(&question)))
    }
}

fn check_path<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let PathCheck { as_subject, path } = receiver(args)?;
    as_subject.check(text(args, 1)?, Target::Path(path))
}

fn check_resource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let ResourceCheck { as_subject, resource } = receiver(args)?;
    as_subject.check(text(args, 1)?, Target::Resource(resource))
}

fn allowed<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(receiver::<Decision>(args)?.allowed))
}

fn reason<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(receiver::<Decision>(args)?.reason.as_str()))
}

fn errored<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(receiver::<Decision>(args)?.error.is_some()))
}

fn error<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(receiver::<Decision>(args)?.error.as_deref().unwrap_or_default()))
}

/// Kubernetes: so much that an expression can afford only two checks.
const CHECK: u64 = 350_000;

fn check_cost(_: &[Value<'_>], _: &Value<'_>) -> u64 {
    CHECK
}

fn check_estimate(_: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(Range::exactly(CHECK)))
}

/// A selector is traversed and becomes a list of requirements, each of at least two characters.
fn selector(length: Range) -> Range {
    let requirements = length.scaled(0.5).scaled((LIST_CREATE + STRUCT_CREATE) as f64);
    Range::exactly(LIST_CREATE).plus(length.scaled(STRING_TRAVERSAL)).plus(requirements)
}

fn selector_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    selector(Range::exactly(charge::size(args, 1))).max
}

fn selector_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(selector(args.get(1)?.size)))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::environment::Env;

    /// Records the checks, and fails for secrets.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Authorizer for Recorder {
        fn authorize(&self, question: &Question<'_>) -> Decision {
            let error = match question.target {
                Target::Resource(of) if of.resource == "secrets" => Some("no way".to_owned()),
                _ => None,
            };
            self.0.lock().unwrap().push(format!("{question:?}"));
            Decision { allowed: error.is_none(), reason: "because".to_owned(), error }
        }
    }

    fn run(source: &str) -> (String, Vec<String>) {
        let recorder = Arc::new(Recorder::default());
        let env = Env::kubernetes()
            .with_variable("authorizer", authorizer_type())
            .with_variable("authorizer.requestResource", resource_check_type());
        let pods =
            Resource { resource: "pods".to_owned(), namespace: "ns".to_owned(), ..Resource::default() };
        let variables = [
            ("authorizer", authorizer_value(recorder.clone())),
            ("authorizer.requestResource", resource_check_value(recorder.clone(), pods)),
        ];
        let checked = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let outcome = checked.program().unwrap().run(&variables, 1_000_000).outcome;
        let asked = recorder.0.lock().unwrap().clone();
        (outcome.map_or_else(|error| error.to_string(), |value| format!("{value:?}")), asked)
    }

    #[test]
    fn questions_reach_the_authorizer() {
        for (source, answer, asked) in [
            (
                "authorizer.path('/x').check('get').allowed()",
                "Bool(true)",
                r#"verb: "get", target: Path("/x")"#,
            ),
            (
                "authorizer.requestResource.subresource('status').check('get').reason()",
                r#"String("because")"#,
                r#"resource: "pods", subresource: "status", namespace: "ns", name: "", field_selector: "", "#,
            ),
            (
                "authorizer.serviceAccount('a', 'b').group('g').resource('r').labelSelector('x=y').check('v').allowed()",
                "Bool(true)",
                r#"subject: ServiceAccount { namespace: "a", name: "b" }, verb: "v", target: Resource(Resource { group: "g""#,
            ),
            (
                "authorizer.group('').resource('secrets').check('get').error()",
                r#"String("no way")"#,
                "secrets",
            ),
            ("authorizer.group('').resource('secrets').check('get').errored()", "Bool(true)", "secrets"),
        ] {
            let (found, questions) = run(source);
            assert_eq!(found, answer, "{source}");
            assert!(questions.len() == 1 && questions[0].contains(asked), "{source}: {questions:?}");
        }
    }
}
