//! Updates of items that come before the items do: each waits on the shelf until its item is there, the next
//! update of that item behind it, and other items pass. `cargo run -p redrive --example items`

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use redrive::{Class, Classed, Cluster, Outgoing, Publisher, Publishing, Received, Subscription, Worker};

const BROKERS: &str = "embedded"; // or "localhost:9092"

type Prices = Arc<Mutex<HashMap<String, String>>>;

fn create(prices: &Prices, record: &Received) -> Result<(), Classed> {
    println!("created {}", record.text().unwrap_or_default());
    prices.lock().unwrap().insert(record.text().unwrap_or_default().to_owned(), "unknown".to_owned());
    Ok(())
}

fn update(prices: &Prices, record: &Received) -> Result<(), Classed> {
    let (item, price) = record.text().and_then(|text| text.split_once('=')).unwrap_or_default();
    match prices.lock().unwrap().get_mut(item) {
        None => Err(Classed::not_ready(format!("there is no {item} yet"))),
        Some(known) => {
            println!("{item}: {known} -> {price}, attempt {}", record.attempt());
            price.clone_into(known);
            Ok(())
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (cluster, prices) = (Cluster::open(BROKERS).await?, Prices::default());
    let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
    let (known, knowing) = (prices.clone(), prices.clone());
    let creations = Subscription::new("creations", "shop").auto_create(true);
    let updates =
        Subscription::new("updates", "shop").auto_create(true).retry(Class::NotReady, "list(1s x60)");
    cluster.create_topic("creations", 1).await?;
    cluster.create_topic("updates", 1).await?;
    let worker = Worker::new(&cluster)
        .subscribe(creations.handler(move |record: Received| {
            let done = create(&known, &record);
            async move { done }
        }))
        .subscribe(updates.handler(move |record: Received| {
            let done = update(&knowing, &record);
            async move { done }
        }));
    let running = worker.start().await?;
    let send = async |topic: &str, item: &str, text: &str| {
        let record = Outgoing::to(topic.parse().unwrap()).key(item.to_owned()).value(text.to_owned());
        publisher.publish(record).await
    };
    send("updates", "kettle", "kettle=12").await?;
    send("updates", "kettle", "kettle=15").await?;
    send("creations", "bowl", "bowl").await?;
    send("updates", "bowl", "bowl=3").await?;
    let mut status = running.statuses()[1].clone();
    status.wait_for(|status| status.counts.shelved >= 2).await?;
    println!("two updates of the kettle wait");
    send("creations", "kettle", "kettle").await?;
    status.wait_for(|status| status.counts.handled >= 3).await?;
    Ok(running.stop().await?)
}
