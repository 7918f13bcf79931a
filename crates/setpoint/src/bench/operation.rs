//! The operations that are measured, and their requests.

use super::place::{Place, Role, kept, object};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Create,
    Get,
    List,
    Update,
    Patch,
    Apply,
    Delete,
}

impl Operation {
    /// In the order in which they run: created objects are deleted before the lists.
    pub(crate) const ALL: [Operation; 7] = [
        Operation::Create,
        Operation::Delete,
        Operation::Get,
        Operation::List,
        Operation::Update,
        Operation::Patch,
        Operation::Apply,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Get => "get",
            Operation::List => "list",
            Operation::Update => "update",
            Operation::Patch => "patch",
            Operation::Apply => "apply",
            Operation::Delete => "delete",
        }
    }
}

/// One client among several, in one measurement. If there are enough objects, no two clients write the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) client: usize,
    pub(crate) clients: usize,
    /// Distinguishes this measurement from those before it.
    pub(crate) edition: u64,
}

impl Seat {
    /// The request with this number.
    pub(crate) fn request(&self, place: &Place, operation: Operation, number: u64) -> Request<Full<Bytes>> {
        let edition = (self.edition << 32) + number;
        match operation {
            Operation::Create => {
                let body = object(&self.passing(number), Role::Passing, edition);
                place.request(Method::POST, &place.path(""), body)
            }
            Operation::Delete => place.request(Method::DELETE, &place.path(&self.passing(number)), ""),
            Operation::Get => place.request(Method::GET, &place.path(&self.own(place.objects, number)), ""),
            Operation::List => place.request(Method::GET, &place.path(""), ""),
            Operation::Update => {
                let name = self.own(place.objects, number);
                place.request(Method::PUT, &place.path(&name), object(&name, Role::Kept, edition))
            }
            Operation::Apply => {
                let name = self.own(place.objects, number);
                let path = format!("{}?fieldManager=setpoint-bench&force=true", place.path(&name));
                let mut request = place.request(Method::PATCH, &path, object(&name, Role::Kept, edition));
                let apply = HeaderValue::from_static("application/apply-patch+yaml");
                request.headers_mut().insert(header::CONTENT_TYPE, apply);
                request
            }
            Operation::Patch => {
                let body = format!(r#"{{"data":{{"edition":"{edition:020}"}}}}"#);
                let mut request =
                    place.request(Method::PATCH, &place.path(&self.own(place.objects, number)), body);
                let merge = HeaderValue::from_static("application/merge-patch+json");
                request.headers_mut().insert(header::CONTENT_TYPE, merge);
                request
            }
        }
    }

    fn passing(&self, number: u64) -> String {
        format!("passing-{}-{number}", self.client)
    }

    /// This client's objects, in turn.
    fn own(&self, objects: usize, number: u64) -> String {
        let share = (objects / self.clients).max(1) as u64;
        kept((self.client + self.clients * (number % share) as usize) % objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_clients_write_the_same_object() {
        for clients in [1, 3, 64, 1000] {
            let mut seen = HashSet::new();
            for client in 0..clients {
                let seat = Seat { client, clients, edition: 0 };
                let own: HashSet<_> =
                    (0..2000 / clients as u64 + 2).map(|number| seat.own(1000, number)).collect();
                assert!(own.iter().all(|name| seen.insert(name.clone())), "{client} of {clients}");
            }
        }
    }
}
