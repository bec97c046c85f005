//! What is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive::{
    Class, Classed, Cluster, Outgoing, Publisher, Publishing, Received, Running, Subscription, Worker,
};
use redrive_kafka::Admin;

use crate::figures::Seen;
use crate::load::{Load, PARTITIONS};
use crate::{clock, exact_wait, machine, plain, told};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How long a record waits at a try, if it does.
type Wait = Arc<dyn Fn(&Received) -> Option<Duration> + Send + Sync>;

fn subscription(load: &str, group: &str, order_by: &str, seen: &Arc<Seen>, wait: Wait) -> Subscription {
    let seen = seen.clone();
    let subscription = Subscription::new(load, group).auto_create(true).concurrency(256);
    let subscription = subscription.surge_guard("off").retry(Class::NotReady, "list(1s x100)");
    subscription.order_by(order_by).handler(move |record: Received| {
        if record.attempt() == 1 {
            seen.tried();
        }
        let outcome = match wait(&record) {
            Some(wait) => {
                seen.aside(&record, wait);
                Err(Classed::not_ready("not yet").retry_after(wait))
            }
            None => {
                seen.handled(&record);
                Ok(())
            }
        };
        async move { outcome }
    })
}

async fn start(cluster: &Cluster, subscription: Subscription) -> Result<Running> {
    Ok(Worker::new(cluster).subscribe(subscription).start().await?)
}

fn group() -> String {
    static GROUPS: AtomicU64 = AtomicU64::new(0);
    format!("shelf-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed))
}

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        clock::pause(Duration::from_millis(5)).await;
    }
}

fn tell(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

/// A number that looks random, the same for a record each time.
fn mixed(record: &Received) -> u64 {
    let mixed = (record.at.offset as u64) << 8 | record.at.partition as u64;
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

/// Random waits of 1 to 30 s while the rest flows.
pub(crate) async fn exact(cluster: &Cluster) -> Result<()> {
    eprintln!("exact: 2M records, one in ten waits 1 to 30 s");
    let load = Load::write(cluster, "exact", 2_000_000, 100, 10_000).await?;
    let seen = Arc::new(Seen::default());
    let wait: Wait = Arc::new(|record| {
        let waits = record.attempt() == 1 && mixed(record).is_multiple_of(10);
        waits.then(|| Duration::from_millis(1_000 + mixed(record) / 10 % 29_000))
    });
    let running = start(cluster, subscription(&load.topic, &group(), "none", &seen, wait)).await?;
    until(|| seen.first_tries.load(Ordering::Relaxed) == load.records).await;
    seen.all_tried();
    until(|| seen.handled.load(Ordering::Relaxed) == load.records).await;
    let rate = load.records as f64 / seen.first_tries_took().as_secs_f64();
    tell(
        "200k of 2M records wait 1 to 30 s",
        &format!("{}; first tries at {:.0}k/s", seen.lateness(), rate / 1e3),
    );
    Ok(running.stop().await?)
}

/// How often what takes a few seconds is measured: the median counts.
const PASSES: u32 = 9;

/// Through the shelf and back, beside plain producing and consuming of the same bytes.
pub(crate) async fn through(cluster: &Cluster) -> Result<()> {
    eprintln!("through the shelf and back");
    let load = Load::write(cluster, "through", 300_000, 1_024, 10_000).await?;
    let mut ratios = Vec::new();
    for pass in 0..PASSES {
        let plain = plain::produce_and_consume(cluster, pass, load.records, 1_024).await?;
        let seen = Arc::new(Seen::default());
        let running = start(cluster, waits_once(&load.topic, &group(), &seen)).await?;
        until(|| seen.handled.load(Ordering::Relaxed) == load.records).await;
        let rate = load.records as f64 / seen.since_first().as_secs_f64();
        running.stop().await?;
        eprintln!("  {rate:.0}/s beside {plain:.0}/s");
        ratios.push((rate / plain, rate, plain));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, rate, plain) = ratios[ratios.len() / 2];
    let (least, most) = (ratios[0].0, ratios[ratios.len() - 1].0);
    let figure = format!(
        "{:.0}k/s beside {:.0}k/s plain: {ratio:.2} ({least:.2} to {most:.2} in {PASSES} passes)",
        rate / 1e3,
        plain / 1e3
    );
    tell("300k records of 1 KiB through the shelf and back", &figure);
    Ok(())
}

/// Every record waits a millisecond, once. They are only counted, as the plain ones are.
fn waits_once(topic: &str, group: &str, seen: &Arc<Seen>) -> Subscription {
    let seen = seen.clone();
    let subscription = Subscription::new(topic, group).auto_create(true).concurrency(256);
    let subscription = subscription.surge_guard("off").retry(Class::NotReady, "list(1s x100)");
    subscription.order_by("none").handler(move |record: Received| {
        let outcome = if record.attempt() == 1 {
            seen.tried();
            Err(Classed::not_ready("not yet").retry_after(Duration::from_millis(1)))
        } else {
            seen.handled.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        async move { outcome }
    })
}

/// One in ten not ready once, tried again after 2 s, without order.
pub(crate) async fn retries(cluster: &Cluster) -> Result<()> {
    // All that is tried takes a third of a second, so one pass says little about its rate.
    let Retries { ratio, retried: Retried { total, seen, .. } } = all_retried(cluster, "none", 7).await?;
    let (total, late) = (total.as_secs_f64(), seen.lateness());
    let figure =
        format!("{total:.2} s; {late}; first nine tenths tried at {ratio:.2} of the rate without failures");
    tell("200k records over 10k keys, 10% tried again after 2 s, without order", &figure);
    Ok(())
}

/// The same in the order of keys: most of them have to wait for another of their key before they are tried at all.
pub(crate) async fn ordered(cluster: &Cluster) -> Result<()> {
    let Retries { retried: Retried { total, seen, .. }, .. } = all_retried(cluster, "key", 3).await?;
    let (total, late) = (total.as_secs_f64(), seen.lateness());
    let floor = seen.longest_chain() * 2;
    let figure =
        format!("{total:.2} s over a floor of {floor} s; {} out of order; {late}", seen.violations());
    tell("200k records over 10k keys, 10% tried again after 2 s, in key order", &figure);
    Ok(())
}

/// The pass in the middle.
struct Retries {
    /// Of the rate without failures.
    ratio: f64,
    retried: Retried,
}

async fn all_retried(cluster: &Cluster, order_by: &str, passes: usize) -> Result<Retries> {
    eprintln!("retries: 200k records over 10k keys, order by {order_by}");
    let load = Load::write(cluster, &format!("retries-{order_by}"), 200_000, 100, 10_000).await?;
    let mut all = Vec::new();
    for _ in 0..passes {
        let plain = retried(cluster, &load, order_by, false).await?;
        let retried = retried(cluster, &load, order_by, true).await?;
        let (total, late) = (retried.total.as_secs_f64(), retried.seen.lateness());
        eprintln!("  {:.0}/s without failures, {:.0}/s with; {total:.2} s; {late}", plain.rate, retried.rate);
        all.push(Retries { ratio: retried.rate / plain.rate, retried });
    }
    all.sort_by(|one, other| match order_by {
        "none" => one.ratio.total_cmp(&other.ratio),
        _ => one.retried.total.cmp(&other.retried.total),
    });
    Ok(all.swap_remove(passes / 2))
}

struct Retried {
    total: Duration,
    /// First tries a second, of the first nine tenths.
    rate: f64,
    seen: Arc<Seen>,
}

async fn retried(cluster: &Cluster, load: &Load, order_by: &str, fails: bool) -> Result<Retried> {
    let wait: Wait = Arc::new(move |record| {
        let waits = fails && record.attempt() == 1 && mixed(record).is_multiple_of(10);
        waits.then(|| Duration::from_secs(2))
    });
    let seen = Arc::new(Seen::default());
    let running = start(cluster, subscription(&load.topic, &group(), order_by, &seen, wait)).await?;
    until(|| seen.first_tries.load(Ordering::Relaxed) >= load.records * 9 / 10).await;
    seen.all_tried();
    until(|| seen.handled.load(Ordering::Relaxed) == load.records).await;
    let total = seen.since_first();
    running.stop().await?;
    let rate = load.records as f64 * 0.9 / seen.first_tries_took().as_secs_f64();
    Ok(Retried { total, rate, seen })
}

/// One lane with many followers behind a leader that fails five times, beside all others: where those wait for something
/// and where they take all that the machine gives.
pub(crate) async fn hot(cluster: &Cluster) -> Result<()> {
    let waits = exact_wait::Wait::start(Duration::from_millis(10));
    hot_beside(cluster, 125_000, "which take 10 ms each", Some(waits)).await?;
    hot_beside(cluster, 500_000, "which take nothing", None).await
}

async fn hot_beside(
    cluster: &Cluster,
    half: u64,
    what: &str,
    takes: Option<&'static exact_wait::Wait>,
) -> Result<()> {
    const FOLLOWERS: u64 = 100_000;
    eprintln!("hot lane beside others {what}");
    let load = Load::write(cluster, &format!("hot-{half}"), half, 100, 10_000).await?;
    let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
    let hot = |_| Outgoing::to(load.topic.parse().expect("a name")).key("hot").value("h");
    let sent: Vec<_> = (0..FOLLOWERS).map(hot).map(|one| publisher.publish(one)).collect();
    for one in sent {
        one.await?;
    }
    load.append(cluster, 100, 10_000)?;
    let others = 2 * half;
    let mut rates = Vec::new();
    for fails in [false, true] {
        let seen = Arc::new(Seen::default());
        let counted = Arc::new(AtomicU64::new(0));
        let subscription = hot_lane(&load.topic, fails, takes, &seen, &counted);
        let running = start(cluster, subscription).await?;
        until(|| counted.load(Ordering::Relaxed) == others).await;
        rates.push(others as f64 / seen.since_first().as_secs_f64());
        until(|| seen.handled.load(Ordering::Relaxed) == others + FOLLOWERS).await;
        if fails {
            let figure = format!(
                "other lanes at {:.2} of their rate without it ({:.0}k/s); drained after {:.1} s; {} out of order",
                rates[1] / rates[0],
                rates[0] / 1e3,
                seen.since_first().as_secs_f64(),
                seen.violations(),
            );
            tell(
                &format!(
                    "100k followers behind a leader that fails 5 times, 1 s apart, beside others {what}"
                ),
                &figure,
            );
        }
        running.stop().await?;
    }
    Ok(())
}

fn hot_lane(
    topic: &str,
    fails: bool,
    takes: Option<&'static exact_wait::Wait>,
    seen: &Arc<Seen>,
    counted: &Arc<AtomicU64>,
) -> Subscription {
    let (seen, counted, leader) = (seen.clone(), counted.clone(), Arc::new(AtomicU64::new(u64::MAX)));
    let subscription = Subscription::new(topic, &group()).auto_create(true).concurrency(256);
    let subscription = subscription.surge_guard("off").retry(Class::NotReady, "list(1s x100)");
    subscription.order_by("key").handler(move |record: Received| {
        let (seen, counted, leader) = (seen.clone(), counted.clone(), leader.clone());
        async move {
            if record.attempt() == 1 {
                seen.tried();
            }
            if record.key.as_deref() != Some(&b"hot"[..]) {
                if let Some(wait) = takes {
                    wait.pass().await;
                }
                counted.fetch_add(1, Ordering::Relaxed);
            } else {
                let offset = record.at.offset as u64;
                let first = leader.fetch_min(offset, Ordering::Relaxed);
                if fails && first >= offset && record.attempt() <= 5 {
                    return Err(Classed::not_ready("not yet").retry_after(Duration::from_secs(1)));
                }
            }
            seen.handled(&record);
            Ok(())
        }
    })
}

/// Many records that wait: what they take, and how fast they are taken over.
pub(crate) async fn waiting(cluster: &Cluster, kafka: &str, records: u64) -> Result<()> {
    eprintln!("{records} records wait");
    let load = Load::write(cluster, "waiting", records, 100, records).await?;
    let (seen, group) = (Arc::new(Seen::default()), group());
    let running = start(cluster, waits_long(&load.topic, &group, &seen)).await?;
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.shelved == records).await?;
    let rate = records as f64 / seen.since_first().as_secs_f64();
    running.stop().await?;
    // By a process of its own, which has nothing else in memory.
    let mut fresh = std::process::Command::new(std::env::current_exe()?);
    fresh.args(["--kafka", kafka, "--take-over", &load.topic, &group, &records.to_string()]);
    let figure = String::from_utf8(fresh.stderr(std::process::Stdio::inherit()).output()?.stdout)?;
    let figure = format!("{}; set aside at {:.0}k/s", figure.trim(), rate / 1e3);
    tell(&format!("{records} records of 100 bytes wait"), &figure);
    Ok(())
}

/// Takes a shelf over on which so many records wait.
pub(crate) async fn take_over(cluster: &Cluster, topic: &str, group: &str, records: u64) -> Result<()> {
    let before = machine::resident();
    let running = start(cluster, waits_long(topic, group, &Arc::new(Seen::default()))).await?;
    until(|| told::taken_over(PARTITIONS as usize).is_some()).await;
    let took = told::taken_over(PARTITIONS as usize).unwrap_or_default();
    clock::pause(Duration::from_secs(5)).await;
    println!(
        "taken over in {:.1} s ({:.0}k/s), resident {before:.0} MB before and {:.0} MB with them",
        took.as_secs_f64(),
        records as f64 / took.as_secs_f64() / 1e3,
        machine::resident(),
    );
    Ok(running.stop().await?)
}

/// Without what this program itself remembers of each record.
fn waits_long(topic: &str, group: &str, seen: &Arc<Seen>) -> Subscription {
    let seen = seen.clone();
    let subscription = Subscription::new(topic, group).auto_create(true).concurrency(256);
    subscription.surge_guard("off").retry(Class::NotReady, "list(1h x3)").handler(move |_: Received| {
        seen.tried();
        async move { Err::<(), _>(Classed::not_ready("not yet")) }
    })
}

/// One record that waits a month beside many short waits: how long the log is in the end.
pub(crate) async fn growth(cluster: &Cluster, records: u64) -> Result<()> {
    eprintln!("{records} short waits beside one of a month");
    let load = Load::write(cluster, "growth", records, 100, 10_000).await?;
    let (seen, group) = (Arc::new(Seen::default()), group());
    let month = Duration::from_secs(30 * 24 * 3_600);
    let wait: Wait = Arc::new(move |record| match (record.at.partition, record.at.offset) {
        (0, 0) => Some(month),
        _ => (record.attempt() == 1).then(|| Duration::from_millis(5)),
    });
    let running = start(cluster, subscription(&load.topic, &group, "none", &seen, wait)).await?;
    let admin = Admin::new(cluster.settings())?;
    let shelf = format!("{}.{group}.shelf", load.topic).parse()?;
    let mut longest = 0;
    while seen.handled.load(Ordering::Relaxed) < load.records - 1 {
        clock::pause(Duration::from_secs(1)).await;
        longest = longest.max(admin.span(&shelf, PARTITIONS).await?);
    }
    let figure = format!(
        "at most {longest} entries in its {PARTITIONS} partitions at a time, about {:.0} MB each",
        longest as f64 / f64::from(PARTITIONS) * 900.0 / 1e6
    );
    tell(&format!("one record waits 30 days, {records} wait 5 ms"), &figure);
    Ok(running.stop().await?)
}
