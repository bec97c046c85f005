//! The child's part: the embedded broker as `redrive broker` runs it.

use std::io::Read;
use std::path::PathBuf;

use redrive_broker::{Broker, BrokerConfig, Data};

pub(crate) fn until_input_ends(data: PathBuf) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let config = BrokerConfig { data: Data::Dir(data), ..BrokerConfig::default() };
    let broker = runtime.block_on(Broker::start(config)).expect("the embedded broker");
    broker.create_topic("first", 1).expect("a topic");
    println!("{}", broker.address());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    runtime.block_on(broker.shutdown());
}
