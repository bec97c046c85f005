//! Records that are sent at a time, where what is delivered may not be deleted.

use redrive::send::{self, Scheduled};
use redrive::{Clock, Cluster, Outgoing, Publisher, Publishing, Status};
use redrive_broker::faults::{ApiKey, Effect, Fault, ResponseError};

use crate::on_embedded;
use crate::place::{PATIENCE, Place, until};

on_embedded!(a_topic_of_what_is_sent_that_may_not_be_cut_grows_and_says_so,);

async fn a_topic_of_what_is_sent_that_may_not_be_cut_grows_and_says_so(place: Place) {
    place.topics(1).await;
    let cluster = Cluster::with(&place.cluster.brokers, place.cluster.properties.clone()).await;
    let cluster = cluster.expect("a cluster");
    send::prepare(&place.admin).await.expect("the topic is made");
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).expect("a publisher");
    let due = Clock::system().now().wall;
    let outgoing = Outgoing::to(place.topic.parse().expect("a name")).key("k").value("now".to_owned());
    let sent = publisher.publish(Scheduled { due, outgoing }.write()).await.expect("it is published");
    let begins = async || {
        let bounds = place.admin.bounds(&sent.topic, sent.partition + 1).await.expect("bounds");
        bounds[sent.partition as usize].0
    };
    let faults = place.broker().await.faults();
    let refused = Effect::Fail(ResponseError::TopicAuthorizationFailed);
    faults.order(Fault::next(ApiKey::DeleteRecords, refused).times(u32::MAX).mentioning(send::TOPIC));
    let deliverer = send::deliverer(&cluster).start().await.expect("it starts");
    let grows = |status: &Status| {
        let told = |problem: &redrive::Problem| {
            problem.what.contains("redrive.send grows, as it cannot be cut")
                && problem.remedy.contains("Delete")
        };
        status.problems.iter().any(told)
    };
    let mut status = deliverer.statuses()[0].clone();
    let told = tokio::time::timeout(PATIENCE, status.wait_for(grows)).await;
    told.expect("it is told").expect("it runs");
    // It was delivered all the same.
    until("delivered", async || {
        let delivered = place.stored(&place.topic, 1).await;
        (delivered.len() == 1).then_some(())
    })
    .await;
    assert_eq!(begins().await, 0);
    deliverer.stop().await.expect("it stops");
    faults.clear();
    let deliverer = send::deliverer(&cluster).start().await.expect("it starts");
    until("it is cut", async || (begins().await > 0).then_some(())).await;
    deliverer.stop().await.expect("it stops");
}
