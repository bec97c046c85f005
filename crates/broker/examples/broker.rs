//! A broker on its own: `cargo run -p redrive-broker --example broker -- 127.0.0.1:9092 ./data`.

use redrive_broker::{Broker, BrokerConfig, Data};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let listen = args.next().unwrap_or_else(|| "127.0.0.1:9092".into()).parse()?;
    let data = args.next().map_or(Data::Memory, |dir| Data::Dir(dir.into()));
    let broker = Broker::start(BrokerConfig {
        listen,
        data,
        ..BrokerConfig::default()
    })
    .await?;
    println!("listening on {}", broker.address());
    tokio::signal::ctrl_c().await?;
    broker.shutdown().await;
    Ok(())
}
