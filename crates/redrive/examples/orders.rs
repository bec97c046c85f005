//! Orders that fail in different ways, and the dead letters that two of them become.
//! `cargo run -p redrive --example orders` runs it on a broker inside the process; change one string for Kafka.

use redrive::{
    Class, Classed, Cluster, Outgoing, Publisher, Publishing, Reader, Received, Subscription, Worker,
};

const BROKERS: &str = "embedded"; // or "localhost:9092"

async fn charge(order: Received) -> Result<(), Classed> {
    match (order.text(), order.attempt()) {
        (Some("nobody's"), _) => Err(Classed::permanent("there is no such customer")),
        (Some("flaky"), 1) => Err(Classed::transient("the connection was reset")),
        (Some("cursed"), _) => Err(Classed::transient("the connection is always reset")),
        (text, attempt) => Ok(println!("charged {} at attempt {attempt}", text.unwrap_or("nothing"))),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::open(BROKERS).await?;
    cluster.create_topic("orders", 1).await?;
    let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
    for order in ["a book", "nobody's", "flaky", "cursed", "a lamp"] {
        publisher.publish(Outgoing::to("orders".parse()?).key(order).value(order)).await?;
    }
    let orders = Subscription::new("orders", "billing")
        .retry(Class::Transient, "list(100ms x2)")
        .auto_create(true)
        .handler(charge);
    let running = Worker::new(&cluster).service("shop").subscribe(orders).start().await?;
    let letters = Reader::from(cluster.settings(), "orders.billing.dlq/0/0".parse()?)?;
    for _ in 0..2 {
        let letter = letters.next().await?;
        println!("letter: {}", String::from_utf8_lossy(letter.value.as_deref().unwrap_or_default()));
        for header in letter.headers.iter() {
            println!(
                "  {}: {}",
                header.name,
                String::from_utf8_lossy(header.value.as_deref().unwrap_or_default())
            );
        }
    }
    Ok(running.stop().await?)
}
