//! The server without sockets: requests in, responses out.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod abuse;
mod access;
mod admission;
mod attacks;
mod audit;
mod bad_input;
mod client;
mod cost;
mod counted;
mod custom;
mod definition_retries;
mod delete_collection;
mod documents;
mod fairness;
mod full_store;
mod golden;
mod kube_client;
mod kubelets;
mod kubernetes_service;
mod metrics;
mod noise;
mod normalise;
mod pod_lab;
mod policies;
mod port_forwarding;
mod proxied_pages;
mod proxies;
mod reading;
mod real_answers;
mod real_clients;
mod real_forms;
mod service_claims;
mod slow_store;
mod socket;
mod status_of_every_kind;
mod subresources;
mod unread_answers;
mod watch_window;
mod web_socket_watches;
mod webhooks;
