//! What a manager runs beside its controllers, and how it ends.

use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{Api, api::ListParams};
use operator::{
    Context, Controller, Error, Failure, Key, Manager, Next, all, lease::Election, metrics::Counter,
};
use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testkit::{Cluster, Fault};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const SECOND: Duration = Duration::from_secs(1);

fn manager(cluster: &Cluster, identity: &str) -> Manager {
    let election = Election::new(cluster.world(), "default", "test").identity(identity);
    Manager::new("test", cluster.world(), cluster.client()).elect(election)
}

/// A manager that counts seconds while it leads, and others always.
fn counting(manager: Manager, leading: &Arc<AtomicU64>, always: &Arc<AtomicU64>) -> Manager {
    let (leading, always) = (Arc::clone(leading), Arc::clone(always));
    manager
        .runnable("leading", |run| async move {
            loop {
                let maps: Api<ConfigMap> = Api::all(run.client());
                maps.list(&ListParams::default()).await?;
                leading.fetch_add(1, Ordering::SeqCst);
                run.world().sleep(SECOND).await;
            }
        })
        .runnable_always("always", |run| async move {
            loop {
                always.fetch_add(1, Ordering::SeqCst);
                run.world().sleep(SECOND).await;
            }
        })
}

#[test]
fn runnables_run_while_leading_or_always_and_end_with_the_manager() {
    testkit::run(|cluster| async move {
        let [first_leading, first_always, second_leading, second_always] =
            std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
        let first = counting(manager(&cluster, "first"), &first_leading, &first_always).start();
        cluster.advance(3 * SECOND).await;
        let second = counting(manager(&cluster, "second"), &second_leading, &second_always).start();
        cluster.advance(10 * SECOND).await;
        let count = |counter: &Arc<AtomicU64>| counter.load(Ordering::SeqCst);
        assert!(count(&first_leading) >= 12 && count(&first_always) >= 12);
        assert_eq!(count(&second_leading), 0);
        assert!(count(&second_always) >= 9);

        first.stop().await.unwrap();
        let ended = (count(&first_leading), count(&first_always));
        cluster.advance(10 * SECOND).await;
        assert_eq!((count(&first_leading), count(&first_always)), ended);
        assert!(count(&second_leading) > 0, "it leads now");
        second.stop().await.unwrap();
    });
}

#[test]
fn a_runnable_that_ends_leaves_the_manager_running_and_one_that_fails_ends_it() {
    testkit::run(|cluster| async move {
        let world = cluster.world().clone();
        let running = manager(&cluster, "one")
            .runnable("short", |_| async { Ok(()) })
            .runnable("failing", |run| async move {
                run.world().sleep(30 * SECOND).await;
                Err("the licence has expired".into())
            })
            .start();
        let begun = world.now();
        let ended = running.ended().await.unwrap_err();
        let took = world.now().since(begun);
        assert!((30 * SECOND..31 * SECOND).contains(&took), "{took:?}");
        assert!(matches!(&ended, Error::Runnable { name, .. } if name == "failing"), "{ended:?}");
        assert_eq!(ended.source().unwrap().to_string(), "the licence has expired");
        // The lease was released: the next one need not wait until it expires.
        let leads = Arc::new(AtomicU64::new(0));
        let _next = counting(manager(&cluster, "two"), &leads, &Arc::default()).start();
        cluster.advance(SECOND).await;
        assert!(leads.load(Ordering::SeqCst) > 0);
    });
}

/// Works for an hour in steps of no time at all: between two steps nothing but the executor decides who is next.
async fn step(context: Context<Arc<AtomicU64>>, _: Key) -> Result<Next, Failure> {
    loop {
        context.state().fetch_add(1, Ordering::SeqCst);
        context.world().sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_dropped_manager_reconciles_not_one_step_further() {
    for seed in 0..20 {
        testkit::simulate(seed, |cluster| async move {
            cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
            let steps = Arc::new(AtomicU64::new(0));
            let controller = Controller::new("steps", all::<ConfigMap>()).workers(4);
            let controller = controller.reconcile(Arc::clone(&steps), step);
            let ticks = Arc::clone(&steps);
            let running = Manager::new("test", cluster.world(), cluster.client())
                .controller(controller)
                .runnable("ticks", |run| async move {
                    loop {
                        ticks.fetch_add(1, Ordering::SeqCst);
                        run.world().sleep(Duration::from_millis(1)).await;
                    }
                })
                .start();
            cluster.world().sleep(SECOND).await;
            drop(running);
            let last = steps.load(Ordering::SeqCst);
            assert!(last > 100, "{last}");
            cluster.world().sleep(SECOND).await;
            assert_eq!(steps.load(Ordering::SeqCst), last, "seed {seed}");
        });
    }
}

/// Records an event on every object.
async fn greet(context: Context<()>, key: Key) -> Result<Next, Failure> {
    if let Some(map) = context.get::<ConfigMap>(&key)? {
        context.events().normal(&*map, "Seen", "Look", "it is there");
    }
    Ok(Next::Settled)
}

fn greeter(cluster: &Cluster, identity: &str) -> Manager {
    let controller = Controller::new("greeter", all::<ConfigMap>().labelled("greet=yes"));
    let client = cluster.client_as(identity, &["system:masters"]);
    let election = Election::new(cluster.world(), "default", "greeter").identity(identity);
    Manager::new("greeter", cluster.world(), client)
        .elect(election)
        .controller(controller.reconcile((), greet))
}

const GREETED: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {greet: 'yes'}}}";

#[test]
fn a_dropped_manager_sends_no_more_requests_and_its_events_are_lost() {
    for seed in 0..20 {
        testkit::simulate(seed, |cluster| async move {
            cluster.apply(GREETED).await;
            cluster.inject(Fault::on("create", "events").always().delay(SECOND));
            let running = greeter(&cluster, "op").start();
            cluster.world().sleep(SECOND / 2).await;
            let requests = || cluster.trace().entries.iter().filter(|entry| entry.caller == "op").count();
            assert_eq!(cluster.trace().of("create", "events").len(), 1, "it is on its way");
            drop(running);
            let before = requests();
            cluster.advance(3600 * SECOND).await;
            assert_eq!(requests(), before, "seed {seed}");
            assert!(cluster.list::<Event>("default").await.is_empty(), "seed {seed}");
        });
    }
}

#[test]
fn a_manager_that_stops_writes_its_last_events_before_it_releases_the_lease() {
    testkit::run(|cluster| async move {
        cluster.apply(GREETED).await;
        cluster.inject(Fault::on("create", "events").nth(1).delay(SECOND));
        let running = greeter(&cluster, "first").start();
        cluster.world().sleep(SECOND / 2).await;
        running.stop().await.unwrap();
        assert_eq!(cluster.list::<Event>("default").await.len(), 1);

        // A server that takes no events does not hold it up for long.
        cluster.inject(Fault::on("create", "events").always().error(503, "ServiceUnavailable"));
        let second = greeter(&cluster, "second").start();
        cluster.world().sleep(SECOND).await;
        let begun = cluster.world().now();
        second.stop().await.unwrap();
        let took = cluster.world().now().since(begun);
        assert!((SECOND..3 * SECOND).contains(&took), "{took:?}");
    });
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: probe\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn own_checks_are_part_of_the_probes() {
    world::run(|world| async move {
        let cluster = Cluster::start(&world).await;
        let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let running = Manager::new("test", &world, cluster.client())
            .probes(address)
            .health_check("licence", || Ok(()))
            .ready_check("warm", || Err("not yet".to_owned()))
            .start();
        while TcpStream::connect(address).await.is_err() {
            world.sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(get(address, "/healthz?verbose").await, "[+]licence ok\nhealthz check passed\n");
        let ready = get(address, "/readyz?verbose").await;
        assert_eq!(ready, "[-]warm failed: reason withheld\nhealthz check failed\n");
        assert_eq!(get(address, "/readyz/warm").await, "internal server error: not yet\n");
        running.stop().await.unwrap();
    })
    .unwrap();
}

const SEEN: (&str, &str) = ("shop_orders_seen_total", "Orders that were seen.");
const SIZES: &[f64] = &[1.0, 10.0];

/// Counts the objects that it has seen, and measures their size; what is gone has no size any more.
async fn count(context: Context<Counter>, key: Key) -> Result<Next, Failure> {
    let labels = [("order", key.name())];
    match context.get::<ConfigMap>(&key)? {
        Some(map) => {
            let size = map.data.iter().flatten().count() as f64;
            context.state().add(1);
            context.metrics().gauge("shop_order_size", "Lines of an order.", &labels).set(size);
            context.metrics().histogram("shop_sizes", "Lines of all orders.", &[], SIZES).observe_value(size);
        }
        None => context.metrics().remove("shop_order_size", &labels),
    }
    Ok(Next::Settled)
}

#[test]
fn own_metrics_are_on_the_page_of_the_manager() {
    testkit::run(|cluster| async move {
        let manager = Manager::new("shop", cluster.world(), cluster.client());
        let seen = manager.metrics().counter(SEEN.0, SEEN.1, &[]);
        let orders = all::<ConfigMap>().labelled("order=yes");
        let running = cluster.run(manager.controller(Controller::new("shop", orders).reconcile(seen, count)));
        let order = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {order: 'yes'}}, data: {size: small}}";
        cluster.apply(order).await;
        cluster.settle().await;
        let page = running.metrics().render();
        for sample in [
            "shop_orders_seen_total 1\n",
            "shop_order_size{order=\"a\"} 1\n",
            "shop_sizes_bucket{le=\"1\"} 1\nshop_sizes_bucket{le=\"10\"} 1\n",
            "# HELP controller_runtime_active_workers ",
        ] {
            assert!(page.contains(sample), "{sample}{page}");
        }
        cluster.delete::<ConfigMap>("default", "a").await;
        cluster.settle().await;
        assert!(!running.metrics().render().contains("shop_order_size"), "the order is gone");
    });
}

#[test]
fn a_metric_with_an_unreadable_name_is_not_on_the_page() {
    let metrics = operator::metrics::Metrics::default();
    for (name, label) in [("1st", "a"), ("the first", "a"), ("", "a"), ("first", "b c")] {
        metrics.counter(name, "Not shown.", &[(label, "x")]).add(1);
    }
    assert_eq!(metrics.render(), "");
}
