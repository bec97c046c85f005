//! Replays as people meet them: what somebody else has, what is never heard of, what is not there.

use std::process::Child;

use bytes::Bytes;
use redrive::{Clock, Cluster, Outgoing, Publisher, Publishing};
use redrive_letters::jobs::Followed;
use serde_json::Value;

use crate::ground::{LETTERS, all, cluster, put, run, start, told};

/// Has a process end as Ctrl-C does.
async fn interrupt(mut child: Child) -> i32 {
    let id = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    tokio::task::spawn_blocking(move || child.wait().unwrap().code().unwrap_or(-1)).await.unwrap()
}

/// The job that has begun to send.
async fn job(cluster: &Cluster) -> String {
    loop {
        let state = Followed::read(cluster.settings()).await.unwrap().state;
        if let Some(job) = state.jobs().first().filter(|job| job.mark.upto > 0) {
            return job.id.to_string();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_letters_that_a_job_has_is_told_which_whose_and_how_it_stands() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 400).await;
    let slow = ["dlq", "replay", "--all", "--rate", "5/s", "--reason", "x", "--yes"];
    let first = start(&cluster, folder, &slow);
    let id = job(&cluster).await;
    let (code, _, said) = told(&run(&cluster, folder, &slow).await);
    assert!(code == 4 && said.contains("no letter matches: state=open"), "{code} {said}");
    let has = format!("job {id} of ann@here has ");
    assert!(said.contains(&has) && said.contains("it is running"), "{said}");
    assert!(said.contains(&format!("redrive replay watch {id}")), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "replay", "--all", "--dry-run"]).await);
    assert!(code == 4 && said.contains(&has), "{code} {said}");

    assert_eq!(interrupt(first).await, 3);
    let (_, data, said) = told(&run(&cluster, folder, &["replay", "list"]).await);
    assert!(data.contains("interrupted"), "{data}");
    assert!(said.contains(&format!("redrive replay resume {id}")), "{said}");
    let (_, _, said) = told(&run(&cluster, folder, &slow).await);
    assert!(
        said.contains("it is interrupted") && said.contains(&format!("redrive replay resume {id}")),
        "{said}"
    );
    let (code, data, _) = told(&run(&cluster, folder, &["replay", "show", &id]).await);
    assert!(code == 0 && data.contains("interrupted: nobody goes on with it"), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_of_which_nothing_is_ever_heard_is_said_at_the_start_and_resumed_with_the_rest() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 20).await;
    let replay = "dlq replay --all --canary 5 --canary-wait 1s --reason x --yes";
    let replay: Vec<&str> = replay.split(' ').collect();
    let (code, data, said) = told(&run(&cluster, folder, &replay).await);
    assert!(code == 3 && said.contains("nothing was heard of 5 of the first 5"), "{code} {data}{said}");
    assert!(said.contains("nothing will be heard of 20 letters in orders"), "{said}");
    assert!(said.contains("redrive replay resume sends the others"), "{said}");
    let id = job(&cluster).await;
    let (code, data, said) = told(&run(&cluster, folder, &["replay", "resume", &id]).await);
    let counts = "20 sent, 0 succeeded, 0 failed again, 0 waiting to be tried again, 20 not heard of";
    assert!(code == 0 && data.contains(counts), "{code} {data}{said}");
    assert_eq!(all(&cluster, "orders").await.len(), 20);

    let (code, data, said) = told(&run(&cluster, folder, &["replay", "watch", &id]).await);
    assert!(code == 0 && data.contains("is finished"), "{code} {data}{said}");
    assert!(said.contains("nothing more will be heard of 20 letters"), "{said}");

    let (code, data, said) = told(&run(&cluster, folder, &["dlq", "show", &format!("{LETTERS}/0/0")]).await);
    assert!(
        code == 0 && data.contains(&format!("sent back by ann@here (job {id}) to orders: x")),
        "{data}{said}"
    );
    let one = ["dlq", "show", &format!("{LETTERS}/0/0"), "-o", "json"].map(ToOwned::to_owned);
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let (_, data, _) = told(&run(&cluster, folder, &one).await);
    let shown: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(shown["replays"], 1);
    assert!(
        shown["replayed_at"].is_string() && shown["replay"].as_str().unwrap().starts_with(&id),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_are_named_and_not_there_are_told_and_the_others_are_dealt_with() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 8).await;
    let there = format!("{LETTERS}/0/0");
    let missing: Vec<String> = (100..105).map(|n| format!("{LETTERS}/0/{n}")).collect();
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    let asked: [&[&str]; 6] = [
        &["dlq", "list"],
        &["dlq", "export"],
        &["dlq", "replay", "--dry-run"],
        &["dlq", "resolve", "--dry-run"],
        &["dlq", "purge", "--dry-run"],
        &["dlq", "replay"],
    ];
    for command in asked {
        let (code, data, said) = told(&run(&cluster, folder, &[command, &missing].concat()).await);
        assert_eq!(code, 4, "{command:?} {data}{said}");
        let (code, data, said) =
            told(&run(&cluster, folder, &[command, &[there.as_str()], &missing].concat()).await);
        assert_eq!(code, 3, "{command:?} {data}{said}");
        let named = format!("there is no letter {}, {}, {} and 2 more", missing[0], missing[1], missing[2]);
        assert!(said.contains(&named), "{command:?} {said}");
    }
    let resolve = ["dlq", "resolve", &format!("{LETTERS}/0/1"), missing[0]].map(ToOwned::to_owned);
    let resolve: Vec<&str> = resolve.iter().map(String::as_str).collect();
    let (code, data, said) = told(&run(&cluster, folder, &resolve).await);
    assert!(code == 3 && data.contains("1 letter resolved"), "{code} {data}{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_and_the_journal_say_of_which_letter_topics_letters_were_taken() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 4).await;
    let named = ["--letters", LETTERS, "--reason", "x", "--yes"];
    let (code, data, said) =
        told(&run(&cluster, folder, &[&["dlq", "replay", "--key", "k1"], &named[..]].concat()).await);
    assert_eq!(code, 0, "{data}{said}");
    let (code, data, said) =
        told(&run(&cluster, folder, &[&["dlq", "resolve", "--key", "k2"], &named[..]].concat()).await);
    assert_eq!(code, 0, "{data}{said}");
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    let selections: Vec<Value> =
        data.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["selection"].clone()).collect();
    let wanted = ["k1", "k2"].map(|key| format!("letters={LETTERS} key=\"{key}\" state=open"));
    assert_eq!(
        (&selections[0], selections.last()),
        (&wanted[0].as_str().into(), Some(&wanted[1].as_str().into()))
    );
    let (_, data, _) = told(&run(&cluster, folder, &["replay", "list", "--all", "-o", "json"]).await);
    let jobs: Value = serde_json::from_str(&data).unwrap();
    let queries: Vec<_> = jobs.as_array().unwrap().iter().map(|job| job["query"].as_str().unwrap()).collect();
    assert_eq!(queries, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_of_letters_of_others_where_they_go_and_which_cannot() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let letter = || Outgoing::to(LETTERS.parse().unwrap()).partition(0).key("c").value("v");
    let spring = letter()
        .header("kafka_dlt-original-topic", "orders")
        .header("kafka_dlt-original-partition", Bytes::copy_from_slice(&(-5_i32).to_be_bytes()))
        .header("kafka_dlt-original-offset", Bytes::copy_from_slice(&1_i64.to_be_bytes()));
    let seed = letter().header("original-topic", "orders").header("dlq-reason", "Max retries exceeded");
    for one in [spring, seed] {
        publisher.publish(one).await.unwrap();
    }
    let (code, data, said) =
        told(&run(&cluster, folder.path(), &["dlq", "replay", "--all", "--dry-run"]).await);
    assert_eq!(code, 3, "{data}{said}");
    assert!(
        data.contains(
            "1 letter would be sent to the original topic orders, to the partitions that their keys lead to"
        ),
        "{data}"
    );
    assert!(data.contains("1 letter left out: they name a partition below 0"), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn following_letters_ends_well_when_it_is_told_to_stop() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    put(&cluster, 2).await;
    let mut command = crate::ground::command(&cluster, folder.path(), &["dlq", "export", "--follow"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        use std::io::{BufRead as _, BufReader};
        let mut lines = BufReader::new(out).lines();
        (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap(), lines)
    });
    // Kept until it has ended: who reads no more ends it, too.
    let (_, second, _lines) = read.await.unwrap();
    assert!(second.contains(LETTERS), "{second}");
    assert_eq!(interrupt(child).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_is_in_the_journal_and_a_topic_that_is_not_there_is_named() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 3).await;
    let (_, data, _) = told(&run(&cluster, folder, &["dlq", "export"]).await);
    std::fs::write(folder.join("letters.ndjson"), &data).unwrap();
    let import = ["dlq", "import", "letters.ndjson", "--reason", "moved"];
    assert_eq!(told(&run(&cluster, folder, &import).await).0, 0);
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    let entries: Vec<Value> = data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<_> = entries.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["import", "import finished"]);
    assert_eq!(
        (&entries[0]["selection"], &entries[0]["why"]),
        (&"from=letters.ndjson".into(), &"moved".into())
    );
    assert_eq!(entries[1]["counts"]["letters"], 3);

    let elsewhere = ["dlq", "import", "letters.ndjson", "--to", "nowhere"];
    let (code, _, said) = told(&run(&cluster, folder, &elsewhere).await);
    assert!(code == 1 && said.contains("there is no topic nowhere") && said.contains("--to TOPIC"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_others_that_get_no_tombstone_in_a_compacted_topic_are_told() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    let settings = [("cleanup.policy".to_owned(), "compact".to_owned())].into();
    let admin = redrive_kafka::Admin::new(cluster.settings()).unwrap();
    admin.create(&"shop.billing.dlq".parse().unwrap(), 1, 1, &settings).await.unwrap();
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    for n in 0..3 {
        let letter = Outgoing::to("shop.billing.dlq".parse().unwrap()).key(format!("k{n}")).value("v");
        publisher.publish(letter.header("dlq-reason", "Max retries exceeded")).await.unwrap();
    }
    let resolve = ["dlq", "resolve", "--all", "--reason", "x", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder, &resolve).await);
    assert_eq!((code, data.as_str()), (0, "3 letters resolved\n"), "{said}");
    assert!(said.contains("3 letters got no tombstone though the topic is compacted"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_killed_is_interrupted_once_nothing_was_heard_of_it_for_a_while() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 400).await;
    let slow = ["dlq", "replay", "--all", "--rate", "20/s", "--reason", "x", "--yes"];
    let mut first = start(&cluster, folder, &slow);
    let id = job(&cluster).await.parse().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let state = Followed::read(cluster.settings()).await.unwrap().state;
    let now = Clock::system().now().wall;
    let job = state.job(&id).unwrap();
    assert_eq!(job.standing_at(now).name(), "running", "as far as anybody knows");
    assert_eq!(job.standing_at(now.plus(std::time::Duration::from_secs(60))).name(), "interrupted");
}
