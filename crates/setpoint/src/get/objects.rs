//! `get -o yaml` and its like: whole objects.

use super::{Wanted, sort};
use crate::client::{
    failure::{ClientError, ClientResult},
    follow,
    output::{ObjectPrinter, as_list},
    print,
    target::ArgumentTarget,
};

pub(super) async fn run(wanted: &Wanted<'_>) -> ClientResult<()> {
    let mut failures = Vec::new();
    let mut found = Vec::new();
    for target in &wanted.targets {
        let fetched = match target {
            ArgumentTarget::Object(object) => {
                wanted.connection.api.get(&object.path()).await.map(|object| vec![object])
            }
            ArgumentTarget::All(resource) => {
                let path = resource.path(wanted.namespace());
                follow::items(&wanted.connection.api, &path, &wanted.selection).await
            }
        };
        match fetched {
            Ok(objects) => found.extend(objects),
            Err(error) if wanted.options.ignore_not_found && error.is_not_found() => {}
            Err(error) => failures.push(error),
        }
    }
    // Kubernetes: one object asked for by its name stands alone, anything else is a list.
    let is_single = matches!(wanted.targets.as_slice(), [ArgumentTarget::Object(_)]);
    if is_single && !failures.is_empty() || found.is_empty() && wanted.options.ignore_not_found {
        return ClientError::all(failures);
    }
    if let Some(path) = &wanted.options.sort_by {
        sort::objects(&mut found, path)?;
    }
    let options = wanted.options;
    let mut printer =
        ObjectPrinter::new(wanted.format.clone(), options.show_managed_fields, !options.no_headers);
    let text = match found.pop() {
        Some(object) if is_single => printer.text(&object)?,
        last => {
            found.extend(last);
            printer.text(&as_list(found))?
        }
    };
    print(&text)?;
    ClientError::all(failures)
}
