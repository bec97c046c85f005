//! Orders that fail in different ways, and the dead letters that two of them become, on a broker inside
//! this process: `cargo run -p redrive --example orders`. For Kafka, change one string.

use redrive::{
    Class, Classed, Cluster, Outgoing, Publisher, Publishing, Reader, Received, Subscription, Worker,
};

const BROKERS: &str = "embedded"; // or "localhost:9092"

async fn charge(order: Received) -> Result<(), Classed> {
    match (order.text().unwrap_or_default(), order.attempt()) {
        ("nobody's", _) => return Err(Classed::permanent("there is no such customer")),
        ("flaky", 1) => return Err(Classed::transient("the connection was reset")),
        ("cursed", _) => return Err(Classed::transient("the connection is always reset")),
        (text, attempt) => println!("charged {text} at attempt {attempt}"),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::open(BROKERS).await?;
    cluster.create_topic("orders", 1).await?;
    let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
    for order in ["a book", "nobody's", "flaky", "cursed", "a lamp"] {
        publisher.publish(Outgoing::to("orders".parse()?).key(order).value(order)).await?;
    }
    let orders = Subscription::new("orders", "billing").auto_create(true).handler(charge);
    let orders = orders.retry(Class::Transient, "list(100ms x2)");
    let running = Worker::new(&cluster).service("shop").subscribe(orders).start().await?;
    let letters = Reader::from(cluster.settings(), "orders.billing.dlq/0/0".parse()?)?;
    for letter in [letters.next().await?, letters.next().await?] {
        println!("a letter from {}", letter.headers.text("redrive-origin").unwrap_or("nowhere"));
        for header in letter.headers.iter() {
            println!("  {}: {:?}", header.name, header.value);
        }
    }
    Ok(running.stop().await?)
}
