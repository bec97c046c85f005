//! Records pushed to an endpoint that does nothing, beside a bare load client on the same endpoint.

use std::path::Path;

use redrive::Cluster;

use crate::load::Load;
use crate::process::processor_time;
use crate::program::{self, Program, subscription, until_seen};
use crate::{Outcome, Sizes};

pub(crate) async fn measure(cluster: &Cluster, sizes: &Sizes, folder: &Path) -> Outcome<()> {
    let keys = 10_000;
    let load = Load::write(cluster, "load", sizes.records, sizes.size, keys)
        .await
        .map_err(|error| error.to_string())?;
    for concurrency in &sizes.concurrency {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for pass in 0..sizes.passes {
            bare.push(loaded(sizes, *concurrency).await?);
            ours.push(pushed(cluster, &load, *concurrency, pass, folder).await?);
        }
        let (ours, bare) = (median(ours), median(bare));
        println!(
            "| pushes of {} bytes, {concurrency} at once | {:.0}/s beside {:.0}/s of the load client: {:.2} | 0.8 |",
            sizes.size,
            ours,
            bare,
            ours / bare
        );
    }
    Ok(())
}

async fn loaded(sizes: &Sizes, concurrency: usize) -> Outcome<f64> {
    let endpoint = Program::endpoint()?;
    program::load(&endpoint.address, sizes.records, concurrency, sizes.size)?;
    ended(&endpoint, sizes.records, "load client").await
}

async fn pushed(
    cluster: &Cluster,
    load: &Load,
    concurrency: usize,
    pass: usize,
    folder: &Path,
) -> Outcome<f64> {
    let endpoint = Program::endpoint()?;
    let url = format!("http://{}/records", endpoint.address);
    let group = format!("push-{}-{concurrency}-{pass}", std::process::id());
    let program = Program::redrive(folder, cluster, &subscription(&load.topic, &group, &url, concurrency))?;
    let rate = ended(&endpoint, load.records, "redrive run").await?;
    let spent = processor_time(program.id()).as_secs_f64();
    eprintln!("    of redrive: {:.1} CPU s/M", spent * 1e6 / load.records as f64);
    Ok(rate)
}

/// Waits for the end, and says the rate: requests a second, from the first to the last.
async fn ended(endpoint: &Program, records: u64, who: &str) -> Outcome<f64> {
    let seen = until_seen(endpoint, records).await?;
    let spent = processor_time(endpoint.id()).as_secs_f64() * 1e6 / records as f64;
    eprintln!("  {who}: {:.0}/s; of the endpoint: {spent:.1} CPU s/M", seen.rate);
    Ok(seen.rate)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
