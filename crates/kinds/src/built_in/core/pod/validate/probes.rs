//! Probes and lifecycle hooks: exactly one handler each, and times that make sense.

use api::field::ErrorList;
use api::name::Format;

use super::containers::Surroundings;
use crate::validate::at::At;

const PROBE: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// All three probes of a container.
pub(super) fn check(container: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.field(field);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, PROBE, around, errors);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.field(number).not_negative(errors);
        }
        let grace = probe.field("terminationGracePeriodSeconds");
        if grace.is_set() {
            grace.positive(errors);
        }
        let threshold = probe.field("successThreshold");
        if field == "readinessProbe" {
            if grace.is_set() {
                grace.invalid(errors, "must not be set for readinessProbes");
            }
        } else if threshold.int() != 1 {
            threshold.invalid_int(errors, "must be 1");
        }
    }
}

pub(super) fn lifecycle(container: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let lifecycle = container.field("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.field(hook);
        if hook.is_set() {
            handler(&hook, HOOK, around, errors);
        }
    }
    let signal = lifecycle.field("stopSignal");
    if !signal.is_set() {
        return;
    }
    match around.os {
        None => signal.forbidden(errors, "may not be set for containers with empty `spec.os.name`"),
        Some("windows") => signal.one_of(errors, &["SIGKILL", "SIGTERM"]),
        Some(_) => linux_signal(&signal, errors),
    }
}

fn linux_signal(signal: &At<'_, '_>, errors: &mut ErrorList) {
    let mut known = [
        "SIGABRT",
        "SIGALRM",
        "SIGBUS",
        "SIGCHLD",
        "SIGCLD",
        "SIGCONT",
        "SIGFPE",
        "SIGHUP",
        "SIGILL",
        "SIGINT",
        "SIGIO",
        "SIGIOT",
        "SIGKILL",
        "SIGPIPE",
        "SIGPOLL",
        "SIGPROF",
        "SIGPWR",
        "SIGQUIT",
        "SIGRTMAX",
        "SIGRTMIN",
        "SIGSEGV",
        "SIGSTKFLT",
        "SIGSTOP",
        "SIGSYS",
        "SIGTERM",
        "SIGTRAP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGUSR1",
        "SIGUSR2",
        "SIGVTALRM",
        "SIGWINCH",
        "SIGXCPU",
        "SIGXFSZ",
    ]
    .map(str::to_owned)
    .to_vec();
    known.extend((1..=14).map(|step| format!("SIGRTMAX-{step}")));
    known.extend((1..=15).map(|step| format!("SIGRTMIN+{step}")));
    known.sort_unstable();
    if !known.iter().any(|it| it == signal.text()) {
        errors.push(api::field::Error::not_supported(signal.path(), signal.text(), &known));
    }
}

fn handler(at: &At<'_, '_>, allowed: &[&str], around: &Surroundings<'_>, errors: &mut ErrorList) {
    let mut found = false;
    for field in allowed {
        let handler = at.field(field);
        if !handler.is_set() {
            continue;
        }
        if found {
            handler.forbidden(errors, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match *field {
            "exec" if handler.field("command").is_empty() => handler.field("command").required(errors, ""),
            "httpGet" => http_get(&handler, errors),
            "tcpSocket" | "grpc" => handler.field("port").port_number_or_name(errors),
            "sleep" => sleep(&handler, around, errors),
            _ => {}
        }
    }
    if !found {
        at.required(errors, "must specify a handler type");
    }
}

fn http_get(http: &At<'_, '_>, errors: &mut ErrorList) {
    if http.text_of("path").is_empty() {
        http.field("path").required(errors, "");
    }
    http.field("port").port_number_or_name(errors);
    http.field("scheme").one_of(errors, &["HTTP", "HTTPS"]);
    let headers = http.field("httpHeaders");
    for header in headers.items() {
        errors.extend(Format::HttpHeaderName.check(headers.path(), header.text_of("name")));
    }
}

fn sleep(at: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let seconds = at.int_of("seconds");
    if let Some(grace) = around.grace
        && !(0..=grace).contains(&seconds)
    {
        let problem = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        at.invalid_as(errors, seconds, problem);
    }
}
