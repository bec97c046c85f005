//! The journal on a real broker: writers that come between each other, and people who tamper with it.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive::{Clock, Cluster, Outgoing, Publisher, Publishing};
use redrive_broker::faults::{ApiKey, Effect, Fault as Struck, ResponseError};
use redrive_broker::{Broker, BrokerConfig};
use redrive_core::Origin;
use redrive_kafka::Admin;
use redrive_letters::journal::{self, Deed, Entry, Fault, Journal};
use redrive_testkit::new_name;

fn deed(who: &str, what: &str) -> Deed {
    Deed {
        who: who.to_owned(),
        at: 1_000,
        what: what.to_owned(),
        selection: "--all".to_owned(),
        job: None,
        counts: BTreeMap::from([("letters".to_owned(), 3)]),
        why: "fixed".to_owned(),
    }
}

async fn faults(cluster: &Cluster) -> Vec<Fault> {
    // What is forged is never confirmed.
    let wait = Duration::from_millis(500);
    let (journal, heads) = Journal::verified(cluster.settings(), &Clock::system(), wait).await.unwrap();
    journal.chain.faults(&heads)
}

/// What a writer did, in order: the numbers of its entries, and what they say.
async fn deeds_of(cluster: &Cluster, who: &str) -> Vec<(u64, String)> {
    let entries = Journal::read(cluster.settings()).await.unwrap().entries.into_iter();
    let theirs = entries.map(|(_, entry)| entry).filter(|entry| entry.deed.who == who);
    theirs.map(|entry| (entry.number, entry.deed.what)).collect()
}

mod processes_of_one_writer_make_one_chain {
    #[tokio::test(flavor = "multi_thread")]
    async fn embedded() {
        let cluster = redrive::Cluster::open("embedded").await.unwrap();
        assert!(
            redrive_letters::journal::Journal::read(cluster.settings()).await.unwrap().entries.is_empty()
        );
        super::processes_of_one_writer_make_one_chain(cluster).await;
    }
    #[tokio::test(flavor = "multi_thread")]
    async fn kafka() {
        let Some(kafka) = redrive_testkit::kafka() else { return };
        let cluster = redrive::Cluster::with(&kafka.brokers, kafka.properties).await.unwrap();
        super::processes_of_one_writer_make_one_chain(cluster).await;
    }
}

async fn processes_of_one_writer_make_one_chain(cluster: Cluster) {
    let (ann, bob) = (new_name("ann@here"), new_name("bob@there"));
    let mut writers = tokio::task::JoinSet::new();
    for process in 0..5 {
        let (settings, ann) = (cluster.settings().clone(), ann.clone());
        writers.spawn(async move {
            for turn in 0..2 {
                journal::append(&settings, deed(&ann, &format!("{process}/{turn}"))).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    journal::append(cluster.settings(), deed(&bob, "purge")).await.unwrap();
    let written = deeds_of(&cluster, &ann).await;
    let numbers: Vec<_> = written.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    let mut deeds: Vec<_> = written.into_iter().map(|(_, what)| what).collect();
    deeds.sort();
    let each = (0..5).flat_map(|process| (0..2).map(move |turn| format!("{process}/{turn}")));
    assert_eq!(deeds, each.collect::<Vec<_>>());
    assert_eq!(deeds_of(&cluster, &bob).await, [(0, "purge".to_owned())]);
    // Others may write to the same cluster.
    let ours = |fault: &Fault| match fault {
        Fault::Changed { writer, .. }
        | Fault::Missing { writer, .. }
        | Fault::Reordered { writer, .. }
        | Fault::Unconfirmed { writer, .. } => *writer == ann || *writer == bob,
    };
    assert_eq!(faults(&cluster).await.into_iter().filter(ours).collect::<Vec<_>>(), vec![]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deed_is_written_once_although_the_answer_to_its_commit_is_lost() {
    let broker = Broker::start(BrokerConfig::default()).await.unwrap();
    let cluster = Cluster::open(&broker.address().to_string()).await.unwrap();
    // The first transaction takes the turn, the second is the entry. When it is asked again whether that one is
    // committed, another process has taken the id.
    let fenced = Effect::Fail(ResponseError::InvalidProducerEpoch);
    broker.faults().order(Struck::next(ApiKey::EndTxn, Effect::Unanswered).nth(2));
    broker.faults().order(Struck::next(ApiKey::EndTxn, fenced).nth(3));
    let entry = journal::append(cluster.settings(), deed("ann@here", "purge")).await.unwrap();
    assert_eq!((entry.number, broker.faults().waiting()), (0, 0));
    journal::append(cluster.settings(), deed("ann@here", "replay")).await.unwrap();
    let written = deeds_of(&cluster, "ann@here").await;
    assert_eq!(written, [(0, "purge".to_owned()), (1, "replay".to_owned())]);
    assert_eq!(faults(&cluster).await, vec![]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_or_forged_is_found() {
    let cluster = Cluster::open("embedded").await.unwrap();
    for turn in 0..3 {
        journal::append(cluster.settings(), deed("ann@here", &turn.to_string())).await.unwrap();
    }
    let forged = Entry { number: 1, before: None, deed: deed("ann@here", "nothing") }.write().0;
    let forged = Outgoing::to(journal::topic()).partition(0).key("ann@here").value(forged);
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    publisher.publish(forged).await.unwrap();
    let found = faults(&cluster).await;
    assert!(matches!(found.as_slice(), [Fault::Reordered { number: 1, .. }]), "{found:?}");

    let (second, _) = Journal::read(cluster.settings()).await.unwrap().entries[1].clone();
    let below = Origin { topic: journal::topic(), partition: 0, offset: second };
    Admin::new(cluster.settings()).unwrap().delete_records(&below).await.unwrap();
    let found = faults(&cluster).await;
    let missing = Fault::Missing { writer: "ann@here".to_owned(), from: 0, to: 0 };
    assert!(found.contains(&missing), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_well_formed_entry_at_the_end_that_no_head_tells_of_is_found_and_the_next_one_does_not_hide_it() {
    let cluster = Cluster::open("embedded").await.unwrap();
    let first = journal::append(cluster.settings(), deed("ann@here", "purge")).await.unwrap();
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let forge = async |number: u64, before: Option<String>, who: &str| {
        let forged = Entry { number, before, deed: deed(who, "nothing") }.write().0;
        publisher.publish(Outgoing::to(journal::topic()).partition(0).key(who.to_owned()).value(forged)).await
    };
    forge(1, Some(first.write().1), "ann@here").await.unwrap();
    forge(0, None, "eve@there").await.unwrap();
    let found = faults(&cluster).await;
    let told: Vec<_> = found
        .iter()
        .map(|fault| match fault {
            Fault::Unconfirmed { writer, number, .. } => (writer.as_str(), *number),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(told, [("ann@here", 1), ("eve@there", 0)]);
    journal::append(cluster.settings(), deed("ann@here", "replay")).await.unwrap();
    let found = faults(&cluster).await;
    let is_anns = |fault: &&Fault| matches!(fault, Fault::Changed { writer, .. } | Fault::Reordered { writer, .. } if writer == "ann@here");
    assert!(found.iter().any(|fault| is_anns(&fault)), "{found:?}");
}
