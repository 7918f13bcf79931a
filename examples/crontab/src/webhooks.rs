//! Defaults and rules of CronTabs. Rules about one field are in the type; this is what needs code.

use crate::{CronTab, NAME, NAMESPACE};
use operator::webhook::{Address, Certificates, Change, Hook, Request, Review, Site, Verdict, Webhooks};

/// What people write instead of five fields.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
/// The days of each month, in a leap year.
const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

pub fn webhooks() -> Webhooks {
    Webhooks::new(NAME)
        .hook(Hook::defaulter(write_out_nickname))
        .hook(Hook::validator(|review: Review<CronTab>| async move { judge(&review.change) }))
}

/// Where the API server finds the webhooks, and the Secret in which replicas share their certificate.
pub fn site(address: Address) -> Site {
    let (namespace, secret) = (NAMESPACE.to_owned(), format!("{NAME}-webhooks"));
    Site { address, certificates: Certificates::Shared { namespace, secret } }
}

/// Before the type's rules are checked, which ask for five fields.
fn write_out_nickname(tab: &mut CronTab, _: &Request) {
    if let Some((_, fields)) = NICKNAMES.iter().find(|(nickname, _)| *nickname == tab.spec.cron_spec) {
        tab.spec.cron_spec = (*fields).to_owned();
    }
}

fn judge(change: &Change<CronTab>) -> Verdict {
    let Some(new) = change.after() else { return Verdict::allow() };
    if let Some((day, month)) = impossible_date(&new.spec.cron_spec) {
        return Verdict::deny(format!("there is no day {day} in month {month}: the CronTab would never run"));
    }
    match change {
        Change::Update { old, new } if old.spec.replicas > 0 && new.spec.replicas == 0 => {
            Verdict::allow().warn("without replicas there are no more runs")
        }
        _ => Verdict::allow(),
    }
}

/// The day and the month of a schedule whose every date is one like February 30.
fn impossible_date(cron_spec: &str) -> Option<(u32, u32)> {
    let [_, _, days, months, "*"] = cron_spec.split(' ').collect::<Vec<_>>()[..] else { return None };
    // Ranges, steps and names: the API server judges them when it gets the CronJob.
    let days: Vec<u32> = days.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    let months: Vec<u32> = months.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    let days_of = |month: u32| DAYS.get(usize::try_from(month).ok()?.checked_sub(1)?).copied();
    let (first, month) = (days.into_iter().min()?, *months.first()?);
    let longest = months.into_iter().map(days_of).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    (first > longest).then_some((first, month))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CronTabSpec;

    fn tab(cron_spec: &str, replicas: i32) -> CronTab {
        CronTab::new("a", CronTabSpec { cron_spec: cron_spec.to_owned(), image: "i".to_owned(), replicas })
    }

    #[test]
    fn dates_that_never_come_are_refused() {
        for (cron_spec, expected) in [
            ("0 0 30 2 *", Some((30, 2))),
            ("0 0 31 4,6 *", Some((31, 4))),
            ("0 0 29 2 *", None),
            ("0 0 31 2,3 *", None),
            ("0 0 1,31 2 *", None),
            // Kubernetes: a day of the week is another date.
            ("0 0 30 2 1", None),
            ("0 0 31 FEB *", None),
            ("0 0 31 13 *", None),
            ("*/5 * * * *", None),
            ("", None),
        ] {
            assert_eq!(impossible_date(cron_spec), expected, "{cron_spec}");
            let verdict = judge(&Change::Create(tab(cron_spec, 1)));
            assert_eq!(verdict.is_allowed(), expected.is_none(), "{cron_spec}");
        }
    }

    #[test]
    fn the_end_of_all_runs_is_warned_of() {
        let warned = Verdict::allow().warn("without replicas there are no more runs");
        for (old, new, expected) in [(1, 0, warned), (0, 0, Verdict::allow()), (0, 1, Verdict::allow())] {
            let (old, new) = (tab("0 0 * * *", old), tab("0 0 * * *", new));
            assert_eq!(judge(&Change::Update { old, new }), expected);
        }
    }
}
