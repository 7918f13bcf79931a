//! Server-side applies beside plain updates of the same objects.

use crate::{
    READERS, ROUND, ROUNDS,
    bench::{client::Client, place::Place},
    median,
    process::busy,
};
use http::Method;
use std::sync::Arc;
use world::World;

/// Server-side applies of Deployments beside plain updates of the same ones.
pub(crate) async fn applies(world: &World, process: u32, place: &Arc<Place>) {
    let mut rates = [const { Vec::new() }; 2];
    let mut work = [const { Vec::new() }; 2];
    for round in 0..ROUNDS {
        for (way, (method, manager)) in
            [(Method::PUT, "updates"), (Method::PATCH, "applies")].iter().enumerate()
        {
            let before = busy(process);
            let writers: Vec<_> = (0..READERS)
                .map(|writer| {
                    let (world_, place, method) = (world.clone(), Arc::clone(place), method.clone());
                    let name = format!("{manager}-{writer}");
                    world.spawn(
                        "writer",
                        async move { write_one(&world_, &place, &method, &name, round).await },
                    )
                })
                .collect();
            let mut done = 0;
            for writer in writers {
                done += writer.await.unwrap();
            }
            rates[way].push(done as f64 / ROUND.as_secs_f64());
            let spent = busy(process).saturating_sub(before).as_secs_f64() * 1e6;
            work[way].push(spent / done as f64);
        }
    }
    let [updated, applied] = rates.map(median);
    let [update_work, apply_work] = work.map(median);
    println!("\nDeployments written a second, {READERS} clients");
    println!("  plain updates {updated:.0} ({update_work:.0} µs), applies {applied:.0} ({apply_work:.0} µs)");
    println!("  an apply costs {:.2} updates", apply_work / update_work);
}

/// Writes one Deployment repeatedly, differently each time; returns how often.
async fn write_one(world: &World, place: &Place, method: &Method, name: &str, round: usize) -> u64 {
    let mut client = Client::connect(world, &place.target).await.unwrap();
    let collection = format!("/apis/apps/v1/namespaces/{}/deployments", place.namespace);
    let body = |edition: u64| {
        serde_json::json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "replicas": edition % 10, "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}, "annotations": {"edition": edition.to_string()}},
                    "spec": {"containers": [{
                        "name": "main", "image": "nginx:1", "ports": [{"containerPort": 80}],
                        "env": [{"name": "A", "value": "b"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }]},
                },
            },
        })
        .to_string()
    };
    let path = format!("{collection}/{name}?fieldManager=bench&force=true");
    let path =
        if *method == Method::PATCH { path } else { format!("{collection}/{name}?fieldManager=bench") };
    if round == 0 && *method == Method::PUT {
        let made = client.send(place.request(Method::POST, &collection, body(0))).await.unwrap();
        assert!(made.status.is_success(), "{}", made.status);
    }
    let (start, mut done) = (world.now(), 0);
    while world.now() < start + ROUND {
        let edition = ((round as u64) << 32) + done + 1;
        let mut request = place.request(method.clone(), &path, body(edition));
        if *method == Method::PATCH {
            let apply = http::HeaderValue::from_static("application/apply-patch+yaml");
            request.headers_mut().insert(http::header::CONTENT_TYPE, apply);
        }
        let answer = client.send(request).await.unwrap();
        assert!(answer.status.is_success(), "{}", answer.status);
        done += 1;
    }
    done
}
