//! All flags of kube-apiserver v1.36 as data: how each is written, and what becomes of it here.

use Form::{Switch, Value};
use Treatment::{Ignored, Refused, Understood};

/// A flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) treatment: Treatment,
}

/// How a flag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `--flag` or `--flag=false`.
    Switch,
    /// `--flag=value` or `--flag value`.
    Value,
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Understood,
    /// Accepted, with the reason in the log why it changes nothing.
    Ignored(&'static str),
    /// Refused, because the server would not do what the flag promises; with what to do instead.
    Refused(&'static str),
}

const AGGREGATION: &str = "no API server is aggregated, and no proxy authenticates users";
const ALPHA: &str = "it belongs to an alpha feature";
const AUDIT_LOG: &str = "the audit log is one file, one line of JSON for each event";
const AUDIT_WEBHOOK: &str = "audit events go to a file only";
const DEBUGGING: &str = "the log and the debugging of this program are its own; see --v and RUST_LOG";
const ENDPOINTS: &str = "the endpoint of the service kubernetes is --advertise-address";
const EVENTS: &str = "events do not expire here";
const FIXED: &str = "its value is fixed here";
const GATES: &str = "each feature is fixed here";
const KUBELETS: &str = "kubelets are reached as their Node objects say";
const METRICS: &str = "the metrics are fixed here";
const NO_WEBHOOK: &str = "no webhook is asked about users or their rights";
const ONE_VERSION: &str = "there is one version here";
const STORE: &str = "the store of this program needs no such setting";
const TOKENS: &str = "tokens are issued and checked in one way";
const USERS: &str =
    "users come from client certificates, --token-auth-file, service accounts and bootstrap tokens";

const fn flag(name: &'static str, form: Form, treatment: Treatment) -> Flag {
    Flag { name, form, treatment }
}

/// Sorted by name. `setpoint-controllers` is our own.
pub(super) const FLAGS: [Flag; 178] = [
    flag(
        "admission-control",
        Value,
        Refused("name plugins with --enable-admission-plugins and --disable-admission-plugins"),
    ),
    flag(
        "admission-control-config-file",
        Value,
        Refused("plugins have no configuration files here; set the labels of a namespace for PodSecurity"),
    ),
    flag("advertise-address", Value, Understood),
    flag("aggregator-reject-forwarding-redirect", Switch, Ignored(AGGREGATION)),
    flag("allow-metric-labels", Value, Ignored(METRICS)),
    flag("allow-metric-labels-manifest", Value, Ignored(METRICS)),
    flag("allow-privileged", Switch, Understood),
    flag("anonymous-auth", Switch, Understood),
    flag("api-audiences", Value, Understood),
    flag("apiserver-count", Value, Ignored(ENDPOINTS)),
    flag("audit-log-batch-buffer-size", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-batch-max-size", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-batch-max-wait", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-batch-throttle-burst", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-batch-throttle-enable", Switch, Ignored(AUDIT_LOG)),
    flag("audit-log-batch-throttle-qps", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-compress", Switch, Ignored(AUDIT_LOG)),
    flag("audit-log-format", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-maxage", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-maxbackup", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-maxsize", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-mode", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-path", Value, Understood),
    flag("audit-log-truncate-enabled", Switch, Ignored(AUDIT_LOG)),
    flag("audit-log-truncate-max-batch-size", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-truncate-max-event-size", Value, Ignored(AUDIT_LOG)),
    flag("audit-log-version", Value, Ignored(AUDIT_LOG)),
    flag("audit-policy-file", Value, Understood),
    flag("audit-webhook-batch-buffer-size", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-batch-initial-backoff", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-batch-max-size", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-batch-max-wait", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-batch-throttle-burst", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-batch-throttle-enable", Switch, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-batch-throttle-qps", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-config-file", Value, Refused("audit events go to a file only; use --audit-log-path")),
    flag("audit-webhook-initial-backoff", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-mode", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-truncate-enabled", Switch, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-truncate-max-batch-size", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-truncate-max-event-size", Value, Ignored(AUDIT_WEBHOOK)),
    flag("audit-webhook-version", Value, Ignored(AUDIT_WEBHOOK)),
    flag("authentication-config", Value, Refused(USERS)),
    flag("authentication-token-webhook-cache-ttl", Value, Ignored(NO_WEBHOOK)),
    flag("authentication-token-webhook-config-file", Value, Refused(USERS)),
    flag("authentication-token-webhook-version", Value, Ignored(NO_WEBHOOK)),
    flag("authorization-config", Value, Refused("name modes with --authorization-mode")),
    flag("authorization-mode", Value, Understood),
    flag("authorization-policy-file", Value, Refused("the mode ABAC has no code here; use RBAC")),
    flag("authorization-webhook-cache-authorized-ttl", Value, Ignored(NO_WEBHOOK)),
    flag("authorization-webhook-cache-unauthorized-ttl", Value, Ignored(NO_WEBHOOK)),
    flag("authorization-webhook-config-file", Value, Refused("the mode Webhook has no code here; use RBAC")),
    flag("authorization-webhook-version", Value, Ignored(NO_WEBHOOK)),
    flag("bind-address", Value, Understood),
    flag("cert-dir", Value, Understood),
    flag("client-ca-file", Value, Understood),
    flag("contention-profiling", Switch, Ignored(DEBUGGING)),
    flag("coordinated-leadership-lease-duration", Value, Ignored(ALPHA)),
    flag("coordinated-leadership-renew-deadline", Value, Ignored(ALPHA)),
    flag("coordinated-leadership-retry-period", Value, Ignored(ALPHA)),
    flag("cors-allowed-origins", Value, Ignored(FIXED)),
    flag("debug-socket-path", Value, Ignored(DEBUGGING)),
    flag("default-not-ready-toleration-seconds", Value, Ignored(FIXED)),
    flag("default-unreachable-toleration-seconds", Value, Ignored(FIXED)),
    flag("default-watch-cache-size", Value, Ignored(STORE)),
    flag("delete-collection-workers", Value, Ignored(STORE)),
    flag("disable-admission-plugins", Value, Understood),
    flag("disable-http2-serving", Switch, Ignored(FIXED)),
    flag("disabled-metrics", Value, Ignored(METRICS)),
    flag("egress-selector-config-file", Value, Refused("connections go out directly")),
    flag("emulated-version", Value, Ignored(ONE_VERSION)),
    flag("emulation-forward-compatible", Switch, Ignored(ONE_VERSION)),
    flag("enable-admission-plugins", Value, Understood),
    flag("enable-aggregator-routing", Switch, Ignored(AGGREGATION)),
    flag("enable-bootstrap-token-auth", Switch, Understood),
    flag("enable-garbage-collector", Switch, Ignored(STORE)),
    flag("enable-logs-handler", Switch, Ignored(DEBUGGING)),
    flag("enable-priority-and-fairness", Switch, Ignored(FIXED)),
    flag(
        "encryption-provider-config",
        Value,
        Refused("objects are stored unencrypted; encrypt the disk instead"),
    ),
    flag("encryption-provider-config-automatic-reload", Switch, Ignored(STORE)),
    flag("endpoint-reconciler-type", Value, Ignored(ENDPOINTS)),
    flag("etcd-cafile", Value, Understood),
    flag("etcd-certfile", Value, Understood),
    flag("etcd-compaction-interval", Value, Understood),
    flag("etcd-count-metric-poll-period", Value, Ignored(METRICS)),
    flag("etcd-db-metric-poll-interval", Value, Ignored(METRICS)),
    flag("etcd-healthcheck-timeout", Value, Ignored(STORE)),
    flag("etcd-keyfile", Value, Understood),
    flag("etcd-prefix", Value, Understood),
    flag("etcd-readycheck-timeout", Value, Ignored(STORE)),
    flag("etcd-servers", Value, Understood),
    flag("etcd-servers-overrides", Value, Refused("all objects are in one etcd cluster")),
    flag("event-ttl", Value, Ignored(EVENTS)),
    flag("external-hostname", Value, Ignored(ENDPOINTS)),
    flag("feature-gates", Value, Ignored(GATES)),
    flag("goaway-chance", Value, Ignored(FIXED)),
    flag("help", Switch, Understood),
    flag("http2-max-streams-per-connection", Value, Ignored(FIXED)),
    flag("kubelet-certificate-authority", Value, Understood),
    flag("kubelet-client-certificate", Value, Understood),
    flag("kubelet-client-key", Value, Understood),
    flag("kubelet-port", Value, Ignored(KUBELETS)),
    flag("kubelet-preferred-address-types", Value, Understood),
    flag("kubelet-read-only-port", Value, Ignored(KUBELETS)),
    flag("kubelet-timeout", Value, Ignored(KUBELETS)),
    flag("kubernetes-service-node-port", Value, Ignored(ENDPOINTS)),
    flag("lease-reuse-duration-seconds", Value, Ignored(STORE)),
    flag("livez-grace-period", Value, Ignored(FIXED)),
    flag("log-flush-frequency", Value, Ignored(DEBUGGING)),
    flag("log-json-info-buffer-size", Value, Ignored(DEBUGGING)),
    flag("log-json-split-stream", Switch, Ignored(DEBUGGING)),
    flag("log-text-info-buffer-size", Value, Ignored(DEBUGGING)),
    flag("log-text-split-stream", Switch, Ignored(DEBUGGING)),
    flag("logging-format", Value, Understood),
    flag("max-connection-bytes-per-sec", Value, Ignored(FIXED)),
    flag("max-mutating-requests-inflight", Value, Understood),
    flag("max-requests-inflight", Value, Understood),
    flag("min-compatibility-version", Value, Ignored(ONE_VERSION)),
    flag("min-request-timeout", Value, Ignored(FIXED)),
    flag("oidc-ca-file", Value, Refused(USERS)),
    flag("oidc-client-id", Value, Refused(USERS)),
    flag("oidc-groups-claim", Value, Refused(USERS)),
    flag("oidc-groups-prefix", Value, Refused(USERS)),
    flag("oidc-issuer-url", Value, Refused(USERS)),
    flag("oidc-required-claim", Value, Refused(USERS)),
    flag("oidc-signing-algs", Value, Refused(USERS)),
    flag("oidc-username-claim", Value, Refused(USERS)),
    flag("oidc-username-prefix", Value, Refused(USERS)),
    flag("peer-advertise-ip", Value, Ignored(ONE_VERSION)),
    flag("peer-advertise-port", Value, Ignored(ONE_VERSION)),
    flag("peer-ca-file", Value, Ignored(ONE_VERSION)),
    flag("permit-address-sharing", Switch, Ignored(FIXED)),
    flag("permit-port-sharing", Switch, Ignored(FIXED)),
    flag("profiling", Switch, Ignored(DEBUGGING)),
    flag("proxy-client-cert-file", Value, Ignored(AGGREGATION)),
    flag("proxy-client-key-file", Value, Ignored(AGGREGATION)),
    flag("request-timeout", Value, Understood),
    flag("requestheader-allowed-names", Value, Ignored(AGGREGATION)),
    flag("requestheader-client-ca-file", Value, Ignored(AGGREGATION)),
    flag("requestheader-extra-headers-prefix", Value, Ignored(AGGREGATION)),
    flag("requestheader-group-headers", Value, Ignored(AGGREGATION)),
    flag("requestheader-uid-headers", Value, Ignored(AGGREGATION)),
    flag("requestheader-username-headers", Value, Ignored(AGGREGATION)),
    flag("runtime-config", Value, Understood),
    flag("runtime-config-emulation-forward-compatible", Switch, Ignored(ONE_VERSION)),
    flag("secure-port", Value, Understood),
    flag("service-account-extend-token-expiration", Switch, Ignored(TOKENS)),
    flag("service-account-issuer", Value, Understood),
    flag("service-account-jwks-uri", Value, Ignored(TOKENS)),
    flag("service-account-key-file", Value, Understood),
    flag("service-account-lookup", Switch, Ignored(TOKENS)),
    flag("service-account-max-token-expiration", Value, Ignored(TOKENS)),
    flag(
        "service-account-signing-endpoint",
        Value,
        Refused("keys are read from files; use --service-account-signing-key-file"),
    ),
    flag("service-account-signing-key-file", Value, Understood),
    flag("service-cluster-ip-range", Value, Understood),
    flag("service-node-port-range", Value, Ignored(FIXED)),
    flag("setpoint-controllers", Value, Understood),
    flag("show-hidden-metrics-for-version", Value, Ignored(METRICS)),
    flag("shutdown-delay-duration", Value, Ignored(FIXED)),
    flag("shutdown-send-retry-after", Switch, Ignored(FIXED)),
    flag("shutdown-watch-termination-grace-period", Value, Ignored(FIXED)),
    flag("storage-backend", Value, Understood),
    flag("storage-initialization-timeout", Value, Ignored(STORE)),
    flag("storage-media-type", Value, Ignored(STORE)),
    flag("strict-transport-security-directives", Value, Ignored(FIXED)),
    flag("tls-cert-file", Value, Understood),
    flag("tls-cipher-suites", Value, Ignored(FIXED)),
    flag("tls-curve-preferences", Value, Ignored(FIXED)),
    flag("tls-min-version", Value, Understood),
    flag("tls-private-key-file", Value, Understood),
    flag("tls-sni-cert-key", Value, Refused("there is one certificate; use --tls-cert-file")),
    flag("token-auth-file", Value, Understood),
    flag("tracing-config-file", Value, Ignored(DEBUGGING)),
    flag("v", Value, Understood),
    flag("version", Switch, Understood),
    flag("vmodule", Value, Ignored(DEBUGGING)),
    flag("watch-cache", Switch, Ignored(STORE)),
    flag("watch-cache-sizes", Value, Ignored(STORE)),
];
