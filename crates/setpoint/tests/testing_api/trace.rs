//! The trace: the requests of all clients in the order in which they were made.

use super::{Tested, create, raw, with_cluster};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn the_trace_has_the_requests_of_all_clients_in_order() {
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let client = &tested.client;
        let body = r#"{"metadata": {"name": "a"}}"#;
        let one = format!("{MAPS}/a");
        for (method, path, agent, user, body) in [
            ("POST", MAPS, "first/1", "ann", body),
            ("GET", &one, "second/1", "", ""),
            ("GET", MAPS, "first/1", "", ""),
            ("POST", MAPS, "second/1", "", body),
            ("DELETE", &one, "second/1", "", ""),
            ("GET", &one, "first/1", "", ""),
        ] {
            let mut headers = vec![("user-agent", agent), ("content-type", "application/json")];
            if !user.is_empty() {
                headers.extend([("impersonate-user", user), ("impersonate-group", "system:masters")]);
            }
            raw(client, method, path, &headers, body).await;
        }
        let trace = async |spec: Value| {
            let trace = create(client, "Trace", "", spec).await;
            let requests = trace["requests"].as_array().unwrap().clone();
            assert!(requests.is_sorted_by(|one, next| one["at"].as_str() <= next["at"].as_str()), "{trace}");
            let text = |it: &Value| {
                let agent = it["client"].as_str().unwrap();
                format!("{agent} {} {}", it["verb"].as_str().unwrap(), it["code"])
            };
            requests.iter().map(text).collect::<Vec<_>>()
        };
        let all = [
            "first/1 create 201",
            "second/1 get 200",
            "first/1 list 200",
            "second/1 create 409",
            "second/1 delete 200",
            "first/1 get 404",
        ];
        assert_eq!(trace(json!({"resource": "configmaps"})).await, all);
        assert_eq!(trace(json!({"resource": "configmaps", "limit": 2})).await, all[4..], "the last ones");
        assert_eq!(trace(json!({"client": "first"})).await, [all[0], all[2], all[5]]);
        assert_eq!(trace(json!({"verb": "write"})).await, [all[0], all[3], all[4]]);
    });
}
