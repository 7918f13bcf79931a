//! The expressions of admission policies and webhooks: what they may name, and what they must come to.

pub mod typed;

use expression::{
    Env, Program, Type,
    library::{authorizer, mutation},
    pattern,
    ty::{Field, Object},
};
use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// What an expression may name beside the objects and the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer {
    pub params: bool,
    pub authorizer: bool,
    /// `Object{…}` and `JSONPatch{…}`.
    pub patches: bool,
}

/// The names that the expressions of one policy share.
#[derive(Clone, Debug)]
pub struct Names {
    env: Env,
    /// The variables that the policy has defined so far.
    variables: Vec<Field>,
    /// What the patterns of all expressions so far take once they are compiled.
    pattern_bytes: Arc<AtomicUsize>,
}

/// What an expression must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Anything,
    Bool,
    Text,
    /// Null stands for none.
    TextOrNull,
    Object,
    Patches,
}

/// An expression ready to run.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub program: Program,
    pub output: Type,
}

// Kubernetes: the name of a type shows in messages.
const VARIABLES: &str = "kubernetes.variables";

static PLAIN: LazyLock<Env> = LazyLock::new(|| with_basics(Env::kubernetes()));
/// Libraries are merged anew for patches, which takes a while.
static PATCHING: LazyLock<Env> = LazyLock::new(|| with_basics(mutation::extend(Env::kubernetes())));

impl Names {
    pub fn new(offer: Offer) -> Names {
        let mut env = if offer.patches { PATCHING.clone() } else { PLAIN.clone() };
        if offer.params {
            env = env.with_variable("params", Type::Dyn);
        }
        if offer.authorizer {
            env = env
                .with_variable("authorizer", authorizer::authorizer_type())
                .with_variable("authorizer.requestResource", authorizer::resource_check_type());
        }
        Names { env, variables: Vec::new(), pattern_bytes: Arc::default() }
    }

    /// The same with objects whose type is known: what a check of types sees.
    pub fn with_types(mut self, object: &Type, params: Option<&Type>) -> Names {
        self.env =
            self.env.with_variable("object", object.clone()).with_variable("oldObject", object.clone());
        if let Some(params) = params {
            self.env = self.env.with_variable("params", params.clone());
        }
        self
    }

    /// Lets expressions use `variables`, even where there are none yet.
    pub fn composed(mut self) -> Names {
        let object = Object::new(VARIABLES, self.variables.clone());
        self.env = self.env.with_variable("variables", Type::Object(object));
        self
    }

    /// Defines `variables.name`; one that did not compile can be anything.
    pub fn define(self, name: &str, compiled: Option<&Compiled>) -> Names {
        let ty = compiled.map_or(Type::Dyn, |compiled| declared(&compiled.output));
        let mut names = self;
        names.variables.retain(|field| &*field.name != name);
        names.variables.push(Field { name: name.into(), ty: ty.clone() });
        names.env = names.env.with_variable(format!("variables.{name}"), ty);
        names.composed()
    }

    /// Text → program. The error is what Kubernetes tells about the expression.
    pub fn compile(&self, source: &str, wanted: Wanted) -> Result<Compiled, String> {
        let checked = self.env.compile(source).map_err(|issues| format!("compilation failed: {issues}"))?;
        let output = checked.output_type().clone();
        wanted.check(&output)?;
        let program = checked.program().map_err(|error| format!("program instantiation failed: {error}"))?;
        let bytes = program.pattern_bytes();
        if self.pattern_bytes.fetch_add(bytes, Relaxed).saturating_add(bytes) > pattern::MAX_TOGETHER_BYTES {
            return Err("compilation failed: regular expressions are too large together".to_owned());
        }
        Ok(Compiled { program, output })
    }

    /// What the checker of types has to say, whatever the expression comes to.
    pub fn doubts(&self, source: &str) -> Option<String> {
        self.env.compile(source).err().map(|issues| issues.to_string())
    }
}

impl Wanted {
    fn types(self) -> Vec<Type> {
        match self {
            Wanted::Anything => Vec::new(),
            Wanted::Bool => vec![Type::Bool],
            Wanted::Text => vec![Type::String],
            Wanted::TextOrNull => vec![Type::String, Type::Null],
            Wanted::Object => vec![mutation::object_type()],
            Wanted::Patches => vec![mutation::patch_list_type()],
        }
    }

    fn check(self, output: &Type) -> Result<(), String> {
        let types = self.types();
        if types.is_empty() || types.contains(output) {
            return Ok(());
        }
        let names: Vec<String> = types.iter().map(printed).collect();
        Err(match names.as_slice() {
            [only] => format!("must evaluate to {only} but got {}", printed(output)),
            several => format!("must evaluate to one of [{}] but got {}", several.join(" "), printed(output)),
        })
    }
}

/// Kubernetes: the names by which cel-go prints types itself.
fn printed(ty: &Type) -> String {
    match ty {
        Type::List(element) => format!("list({})", printed(element)),
        Type::Map(pair) => format!("map({}, {})", printed(&pair.0), printed(&pair.1)),
        Type::Null | Type::Duration | Type::Timestamp => ty.name().to_owned(),
        other => other.to_string(),
    }
}

/// Kubernetes: of the type of a variable, expressions that use it know no more than this.
fn declared(ty: &Type) -> Type {
    match ty {
        Type::List(element) => Type::list(declared(element)),
        Type::Map(pair) => Type::map(declared(&pair.0), declared(&pair.1)),
        Type::Object(_) | Type::Optional(_) | Type::Type(_) | Type::Opaque(_) => Type::Dyn,
        simple => simple.clone(),
    }
}

fn with_basics(env: Env) -> Env {
    env.with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("namespaceObject", Type::Object(namespace_type()))
        .with_variable("request", Type::Object(request_type()))
}

fn field(name: &str, ty: Type) -> Field {
    Field { name: name.into(), ty }
}

fn texts(name: &str, fields: &[&str]) -> Type {
    Type::Object(Object::new(name, fields.iter().map(|it| field(it, Type::String)).collect()))
}

fn request_type() -> Arc<Object> {
    let kind = texts("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = texts("kubernetes.GroupVersionResource", &["group", "version", "resource"]);
    let user = Object::new(
        "kubernetes.UserInfo",
        vec![
            field("username", Type::String),
            field("uid", Type::String),
            field("groups", Type::list(Type::String)),
            field("extra", Type::map(Type::String, Type::list(Type::String))),
        ],
    );
    let mut fields = vec![
        field("kind", kind.clone()),
        field("requestKind", kind),
        field("resource", resource.clone()),
        field("requestResource", resource),
        field("userInfo", Type::Object(user)),
        field("dryRun", Type::Bool),
        field("options", Type::Dyn),
        field("__namespace__", Type::String),
    ];
    let plain = ["subResource", "requestSubResource", "name", "operation"];
    fields.extend(plain.map(|name| field(name, Type::String)));
    Object::new("kubernetes.AdmissionRequest", fields)
}

fn namespace_type() -> Arc<Object> {
    let labels = || Type::map(Type::String, Type::String);
    let list = || Type::list(Type::String);
    let condition = Object::new(
        "kubernetes.NamespaceCondition",
        vec![
            field("status", Type::String),
            field("type", Type::String),
            field("lastTransitionTime", Type::Timestamp),
            field("message", Type::String),
            field("reason", Type::String),
        ],
    );
    let status = vec![field("conditions", Type::list(Type::Object(condition))), field("phase", Type::String)];
    let metadata = vec![
        field("name", Type::String),
        field("generateName", Type::String),
        field("__namespace__", Type::String),
        field("labels", labels()),
        field("annotations", labels()),
        field("UID", Type::String),
        field("creationTimestamp", Type::Timestamp),
        field("deletionGracePeriodSeconds", Type::Int),
        field("deletionTimestamp", Type::Timestamp),
        field("generation", Type::Int),
        field("resourceVersion", Type::String),
        field("finalizers", list()),
    ];
    let object = |name: &str, fields| Type::Object(Object::new(name, fields));
    Object::new(
        "kubernetes.Namespace",
        vec![
            field("metadata", object("kubernetes.NamespaceMetadata", metadata)),
            field("spec", object("kubernetes.NamespaceSpec", vec![field("finalizers", list())])),
            field("status", object("kubernetes.NamespaceStatus", status)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_know_their_names() {
        let names = Names::new(Offer { params: true, authorizer: true, patches: false });
        let count = names.compile("object.spec.replicas + 1", Wanted::Anything).unwrap();
        let sum = names.compile("size(request.userInfo.groups)", Wanted::Anything).unwrap();
        let names = names.composed().define("n", Some(&count)).define("groups", Some(&sum));
        for (source, wanted, problem) in [
            ("variables.groups > 1", Wanted::Bool, ""),
            ("variables.n <= 3 && request.namespace == params.x", Wanted::Bool, ""),
            ("namespaceObject.metadata.labels['a'] == 'b'", Wanted::Bool, ""),
            ("authorizer.requestResource.check('get').allowed()", Wanted::Bool, ""),
            ("1", Wanted::Bool, "must evaluate to bool but got int"),
            ("1", Wanted::TextOrNull, "must evaluate to one of [string null_type] but got int"),
            ("variables.other == 1", Wanted::Bool, "undefined field 'other'"),
            ("request.what == 1", Wanted::Bool, "undefined field 'what'"),
            ("Object{}", Wanted::Object, "undeclared reference to 'Object'"),
        ] {
            let told = names.compile(source, wanted).err().unwrap_or_default();
            assert!(told.contains(problem) && told.is_empty() == problem.is_empty(), "{source}: {told}");
        }
    }

    #[test]
    fn mutations_make_objects_and_patches() {
        let names = Names::new(Offer { patches: true, ..Offer::default() });
        for (source, wanted, problem) in [
            ("Object{spec: Object.spec{replicas: 1}}", Wanted::Object, ""),
            ("[JSONPatch{op: 'remove', path: '/a'}]", Wanted::Patches, ""),
            ("{'a': 1}", Wanted::Object, "must evaluate to Object but got map(string, int)"),
            ("1", Wanted::Patches, "must evaluate to list(JSONPatch) but got int"),
        ] {
            let told = names.compile(source, wanted).err().unwrap_or_default();
            assert_eq!(told, problem, "{source}");
        }
    }
}
