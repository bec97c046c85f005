//! The same questions are asked of every command, and nonsense is refused by name.

use crate::ground::{LETTERS, cluster, put, run, told};

/// Everything that takes a question, without changing anything.
const COMMANDS: [&[&str]; 6] = [
    &["dlq", "list"],
    &["dlq", "export"],
    &["dlq", "damaged"],
    &["dlq", "replay", "--dry-run"],
    &["dlq", "resolve", "--dry-run"],
    &["dlq", "purge", "--dry-run"],
];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_about_letters_takes_every_filter() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 4).await;
    let (_, data, _) = told(&run(&cluster, folder, &["dlq", "groups", "-o", "json"]).await);
    let groups: serde_json::Value = serde_json::from_str(&data).unwrap();
    let failure = groups["groups"][0]["id"].as_str().unwrap();
    let all = [
        "--topic",
        "orders",
        "--group",
        "billing",
        "--failure",
        failure,
        "--key-pattern",
        "^k",
        "--after",
        "2023-01-01",
        "--before",
        "1h ago",
        "--why",
        "permanent",
        "--error",
        "customer",
        "--header",
        "mine=1",
        "--attempts",
        "..3",
        "--state",
        "open",
        "--dialect",
        "redrive",
    ];
    for command in COMMANDS {
        let (code, data, said) = told(&run(&cluster, folder, &[command, &all[..]].concat()).await);
        assert_eq!(code, 0, "{command:?} {data}{said}");
        assert!(format!("{data}{said}").contains(['2', '4']), "{command:?} {data}{said}");
        for other in [["--header", "mine=2"], ["--attempts", "7.."], ["--why", "expired"], ["--lane", "none"]]
        {
            let (code, _, said) = told(&run(&cluster, folder, &[command, &other[..]].concat()).await);
            assert_eq!(code, 4, "{command:?} {other:?} {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_mean_is_refused_with_the_flag_and_the_remedy() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    for command in COMMANDS {
        for (asked, remedy) in [
            (["--attempts", "5..3"], "write 3..5"),
            (["--header", "=x"], "NAME=VALUE"),
            (["--error", "--"], "no word"),
            (["--key-pattern", "("], "regular expression"),
            (["--state", "shut"], "there are open"),
        ] {
            let asked = format!("{}={}", asked[0], asked[1]);
            let (code, data, said) =
                told(&run(&cluster, folder, &[command, &[asked.as_str()]].concat()).await);
            let flag = asked.split('=').next().unwrap();
            assert!(code == 2 && data.is_empty(), "{command:?} {asked}: {code} {said}");
            assert!(said.contains(flag) && said.contains(remedy), "{command:?} {asked}: {said}");
        }
    }
    for (asked, flag, remedy) in [
        (&["dlq", "list", "--limit", "0"][..], "--limit", "1 or more"),
        (&["dlq", "groups", "--limit", "0"], "--limit", "1 or more"),
        (&["dlq", "list", "--cursor", "here"], "--cursor", "leave it out"),
        (&["dlq", "list", "--since", "1h", "--before", "2h"], "--before", "not later"),
        (&["dlq", "replay", "--all", "--rate", "50"], "--rate", "write 50/s"),
        (&["dlq", "replay", "--all", "--canary", "0"], "--canary", "1 or more"),
    ] {
        let (code, data, said) = told(&run(&cluster, folder, asked).await);
        assert!(code == 2 && data.is_empty(), "{asked:?} {code} {said}");
        assert!(said.contains(flag) && said.contains(remedy), "{asked:?} {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_imported_is_told_with_its_line() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    let good = format!(r#"{{"topic": "{LETTERS}", "partition": 0, "headers": [], "key": "k"}}"#);
    let elsewhere = good.replace(LETTERS, "nowhere.dlq");
    for (bad, why) in [
        (b"{\"topic\": 1}".to_vec(), "line 3: not a line that was exported: `topic` is missing"),
        (vec![0xff, 0xfe], "line 3: not a line that was exported: invalid utf-8"),
        (b"[]".to_vec(), "line 3: "),
        (elsewhere.into_bytes(), "it is line 3 that was not taken"),
    ] {
        let lines = [good.as_bytes(), b"", &bad, good.as_bytes()].join(&b'\n');
        std::fs::write(folder.join("letters.ndjson"), lines).unwrap();
        let (code, _, said) = told(&run(&cluster, folder, &["dlq", "import", "letters.ndjson"]).await);
        assert!(code == 1 && said.contains(why), "{code} {said}");
    }
}
