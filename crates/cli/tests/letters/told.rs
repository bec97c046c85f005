//! What the commands say, and how they end.

use redrive_letters::jobs::Followed;

use crate::ground::{LETTERS, all, cluster, put, run, told};

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_says_what_it_would_do_does_it_once_and_is_in_the_journal() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    let (code, _, said) =
        told(&run(&cluster, folder, &["dlq", "replay", "--all", "--reason", "x", "--yes"]).await);
    assert_eq!(code, 4, "{said}");
    put(&cluster, 20).await;

    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "replay"]).await);
    assert!(code == 2 && said.contains("which letters?"), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "replay", "--all"]).await);
    assert!(code == 2 && said.contains("--reason"), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "replay", "--all", "--reason", "x"]).await);
    assert!(code == 2 && said.contains("--yes"), "{said}");
    let (code, data, _) = told(&run(&cluster, folder, &["dlq", "replay", "--all", "--dry-run"]).await);
    let plainly =
        "20 letters would be sent to the original topic orders: every group that consumes it gets them again";
    assert_eq!((code, data.trim()), (0, plainly));
    assert!(all(&cluster, "orders").await.is_empty(), "a dry run sends nothing");

    let one = format!("{LETTERS}/0/0");
    let (code, data, said) = told(&run(&cluster, folder, &["dlq", "replay", &one]).await);
    assert!(code == 0 && data.contains("1 sent"), "{data}{said}");
    let all_of_them = ["dlq", "replay", "--all", "--reason", "fixed in 1.4", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder, &all_of_them).await);
    assert!(code == 0 && data.contains("19 sent"), "the others: {data}{said}");
    assert_eq!(all(&cluster, "orders").await.len(), 20);
    let (code, _, said) = told(&run(&cluster, folder, &all_of_them).await);
    assert!(code == 4 && said.contains("no letter matches"), "none is open: {said}");
    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "replay", &one]).await);
    assert!(code == 4 && said.contains("sent them already"), "{said}");

    let (code, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    let entries: Vec<serde_json::Value> =
        data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<_> = entries.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!((code, what), (0, vec!["replay", "replay finished", "replay", "replay finished"]));
    assert_eq!((&entries[2]["who"], &entries[2]["why"]), (&"ann@here".into(), &"fixed in 1.4".into()));
    let (code, _, said) = told(&run(&cluster, folder, &["journal", "verify"]).await);
    assert!(code == 0 && said.contains("4 entries of 1 writer: all are as they were written"), "{said}");

    let (code, data, _) = told(&run(&cluster, folder, &["replay", "list", "-o", "json"]).await);
    let jobs: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!((code, jobs.as_array().unwrap().len()), (0, 2));
    assert_eq!((&jobs[1]["state"], &jobs[1]["sent"]), (&"finished".into(), &19.into()));
    let id = jobs[1]["id"].as_str().unwrap();
    let (code, data, _) = told(&run(&cluster, folder, &["replay", "show", &id[..5]]).await);
    assert!(code == 0 && data.contains("19 sent") && data.contains("fixed in 1.4"), "{data}");
    let (code, _, said) = told(&run(&cluster, folder, &["replay", "resume", id]).await);
    assert!(code == 1 && said.contains("finished already"), "{said}");
    let (code, _, _) = told(&run(&cluster, folder, &["replay", "show", "zzz"]).await);
    assert_eq!(code, 4);
    assert_eq!(Followed::read(cluster.settings()).await.unwrap().state.jobs().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_paused_resumed_and_cancelled_from_elsewhere() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 2_000).await;
    let slow = ["dlq", "replay", "--all", "--rate", "50/s", "--reason", "x", "--yes"];
    let job = async {
        loop {
            let state = Followed::read(cluster.settings()).await.unwrap().state;
            if let Some(job) = state.jobs().first().filter(|job| job.mark.upto > 0) {
                return job.id.to_string();
            }
        }
    };
    // It ends as soon as another process goes on.
    let fenced_off = tokio::sync::Notify::new();
    let operating = async {
        let id = job.await;
        let (code, data, said) =
            told(&run(&cluster, folder, &["replay", "pause", &id, "--reason", "lunch"]).await);
        assert!(code == 0 && data.contains("pauses"), "{data}{said}");
        // This process takes it over; the other is fenced off and says so.
        let resume = ["replay", "resume", &id];
        let resumed = run(&cluster, folder, &resume);
        let upto = async || {
            let state = Followed::read(cluster.settings()).await.unwrap().state;
            state.job(&id.parse().unwrap()).unwrap().mark.upto
        };
        let cancelled = async {
            fenced_off.notified().await;
            let (before, clock) = (upto().await, redrive::Clock::system());
            while upto().await == before {
                assert!(clock.now().steady < std::time::Duration::from_secs(30), "nothing more is sent");
            }
            run(&cluster, folder, &["replay", "cancel", &id, "--reason", "enough"]).await
        };
        let (resumed, cancelled) = tokio::join!(resumed, cancelled);
        (told(&resumed), told(&cancelled), id)
    };
    let running = async {
        let first = run(&cluster, folder, &slow).await;
        fenced_off.notify_one();
        first
    };
    let (first, (resumed, cancelled, id)) = tokio::join!(running, operating);
    let first = told(&first);
    assert!(first.0 == 3 && first.2.contains("another process goes on"), "{first:?}");
    assert!(resumed.0 == 3 && resumed.2.contains("it was cancelled"), "{resumed:?}");
    assert!(cancelled.0 == 0 && cancelled.1.contains("is cancelled"), "{cancelled:?}");
    let sent = all(&cluster, "orders").await.len();
    let state = Followed::read(cluster.settings()).await.unwrap().state;
    let job = state.job(&id.parse().unwrap()).unwrap();
    assert_eq!(job.counts().sent, sent as u64);
    assert!(sent > 0 && sent < 2_000, "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_letters_are_exported_whole_in_runs() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    put(&cluster, 3_000).await;
    let clock = redrive::Clock::system();
    let began = clock.now().steady;
    let (code, data, said) = told(&run(&cluster, folder.path(), &["dlq", "export"]).await);
    let took = clock.now().steady - began;
    assert!(code == 0 && said.contains("3000 letters exported"), "{said}");
    // One at a time they would take minutes.
    assert!(took < std::time::Duration::from_secs(40), "{took:?}");
    let place = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["partition"].as_i64().unwrap(), line["offset"].as_i64().unwrap())
    };
    let places: Vec<_> = data.lines().map(place).collect();
    let all: Vec<_> = (0..2).flat_map(|partition| (0..1_500).map(move |n| (partition, n))).collect();
    assert_eq!(places, all, "each once, as they lie");
}
