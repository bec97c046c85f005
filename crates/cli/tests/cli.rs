//! The program as a person runs it: what it prints, where, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn redrive(args: &[&str]) -> Ran {
    ran(&Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(args)
        .env_remove("REDRIVE_CONFIG")
        .output()
        .unwrap())
}

fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout.clone()).unwrap(),
        err: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}

#[test]
fn a_policy_and_its_older_spelling_are_explained_alike() {
    let ours = redrive(&["explain", "exponential(1s..60s x2, 120)"]);
    let older = redrive(&["explain", "LimitedExponentialRetryPolicy(1,60,2,120)"]);
    assert_eq!((ours.code, &ours.out), (0, &older.out));
    let delays: Vec<_> =
        ours.out.lines().skip(3).filter_map(|line| line.split_whitespace().nth(1)).take(8).collect();
    assert_eq!(delays, ["1s", "2s", "4s", "8s", "16s", "32s", "60s", "60s"]);
    assert!(ours.out.contains("120 retries, at most 1h 55m 3s in all"), "{}", ours.out);
}

#[test]
fn a_policy_as_json_lists_every_delay() {
    let ran = redrive(&["explain", "exponential(1s..60s x2, 120)", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["schedule"].as_array().unwrap().len(), 120);
    assert_eq!((&json["retries"], &json["total_ms"]), (&120.into(), &6_903_000.into()));
    assert_eq!(json["schedule"][119]["elapsed_ms"], 6_903_000);
    let endless = redrive(&["explain", "exponential(1s..60s x2)", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&endless.out).unwrap();
    assert_eq!(
        (&json["endless"], &json["truncated"], &json["retries"]),
        (&true.into(), &true.into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_mistake_in_a_policy_has_a_caret_under_it() {
    let ran = redrive(&["explain", "exponential(1s.. x2)"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let lines: Vec<_> = ran.err.lines().collect();
    let source = lines.iter().position(|line| line.contains("exponential(1s.. x2)")).expect("the policy");
    let caret = lines[source + 1].find('^').expect("a caret");
    assert_eq!(caret, lines[source].find(" x2)").unwrap(), "{}", ran.err);
}

#[test]
fn a_file_with_five_mistakes_gets_five_errors_and_exit_code_78() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redrive.toml");
    let text = "[kafka]\nbrokers = \"${NO_SUCH_VARIABLE}\"\nbrockers = \"x\"\n[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\n\
                class = \"fatal\"\nretry.outage = \"sometimes\"\ndelay = \"ladder\"\norder-by = \"key\"\n";
    fs::write(&file, text).unwrap();
    let ran = redrive(&["check", "-c", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (78, ""), "{}", ran.err);
    assert_eq!(ran.err.matches("error: ").count(), 5, "{}", ran.err);
    assert!(ran.err.contains("5 errors in "), "{}", ran.err);
}

#[test]
fn what_run_refuses_of_skip_damaged_check_refuses_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redrive.toml");
    for (followers, code) in [("hold", 78), ("bury", 78), ("pass", 0)] {
        let text = format!(
            "kafka.brokers = \"127.0.0.1:1\"\n[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\nskip-damaged = true\n\
             followers = \"{followers}\"\nhandler.http.url = \"http://127.0.0.1:1/\"\n"
        );
        fs::write(&file, text).unwrap();
        let ran = redrive(&["check", "-c", file.to_str().unwrap()]);
        assert_eq!(ran.code, code, "{followers}: {}", ran.err);
        assert_eq!(ran.err.contains("skip-damaged needs followers"), code == 78, "{}", ran.err);
    }
}

#[test]
fn a_property_that_librdkafka_does_not_know_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redrive.toml");
    fs::write(&file, "[kafka]\nbrokers = \"b\"\nproperties = { \"socket.timeoout.ms\" = 5 }\n").unwrap();
    let ran = redrive(&["check", "-c", file.to_str().unwrap()]);
    assert_eq!(ran.code, 78);
    assert!(ran.err.contains("librdkafka does not accept socket.timeoout.ms"), "{}", ran.err);
}

#[test]
fn what_exactly_once_does_not_cover_is_said_and_no_secret_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redrive.toml");
    let text = "kafka.brokers = \"b\"\n[server]\ntoken = \"hunter2-token\"\n[[subscription]]\nname = \"pay\"\ntopic = \"orders\"\n\
                group = \"pay\"\nhandler.http.url = \"https://me:hunter2@h:1/orders\"\ndelivery = \"exactly-once\"\n\
                [[subscription.classify]]\nmessage = \"hunter2\"\nclass = \"outage\"\n";
    fs::write(&file, text).unwrap();
    let ran = redrive(&["check", "-c", file.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for said in [
        "pay: orders consumed by pay",
        "https://h:1/orders; 64 at once within 30s each, and as many retries",
        "by 1 rule of its own; transient if nothing else says so",
        "It does not cover what the endpoint does itself",
        "waits in orders.pay.shelf; dead letters in orders.pay.dlq; pauses in redrive.state",
    ] {
        assert!(ran.out.contains(said), "{said} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains("hunter2"), "{}", ran.out);
}

#[test]
fn a_valid_file_is_explained_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"\nexhausted.transient = \"shelve\"\n";
    fs::write(folder.path().join("redrive.toml"), text).unwrap();
    let program = env!("CARGO_BIN_EXE_redrive");
    let ran = ran(&Command::new(program)
        .arg("check")
        .current_dir(folder.path())
        .env_remove("REDRIVE_CONFIG")
        .output()
        .unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for expected in [
        "redrive.toml is valid",
        "tried again in place, list(100ms x2, 1s); then set aside while its neighbours go on",
        "permanent  a dead letter",
        "waits in orders.pay.shelf; dead letters in orders.pay.dlq",
    ] {
        assert!(ran.out.contains(expected), "{expected} is not in\n{}", ran.out);
    }
}

#[test]
fn a_missing_file_is_named_with_the_remedy() {
    let ran = redrive(&["check", "-c", "/no/such/redrive.toml"]);
    assert_eq!(ran.code, 78);
    assert!(ran.err.contains("/no/such/redrive.toml") && ran.err.contains("-c FILE"), "{}", ran.err);
}

#[test]
fn a_handler_that_cannot_work_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redrive.toml");
    let handlers = [
        (
            "handler.http = { url = \"https://localhost/\", ca = \"/no/such.pem\" }",
            "ca: /no/such.pem cannot be read",
        ),
        ("handler.command.argv = [\"/no/such/program\"]", "argv: there is no program /no/such/program"),
    ];
    for (handler, told) in handlers {
        let text =
            format!("kafka.brokers = \"b\"\n[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\n{handler}\n");
        fs::write(&file, text).unwrap();
        let ran = redrive(&["check", "-c", file.to_str().unwrap()]);
        assert_eq!((ran.code, ran.out.as_str()), (78, ""));
        assert!(ran.err.contains(&format!("t as g: {told}")) && ran.err.contains("\nhelp: "), "{}", ran.err);
    }
}

#[test]
fn the_file_is_named_by_the_variable_unless_that_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("redrive.toml"), "[kafka]\nbrokers = \"b\"\n").unwrap();
    fs::write(folder.path().join("other.toml"), "[kafka]\n").unwrap();
    let check = |variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        ran(&command
            .arg("check")
            .current_dir(folder.path())
            .env("REDRIVE_CONFIG", variable)
            .output()
            .unwrap())
    };
    assert_eq!(check("").code, 0);
    let other = check("other.toml");
    assert_eq!(other.code, 78);
    assert!(other.err.contains("other.toml:1:1"), "{}", other.err);
}

#[test]
fn schema_completions_and_version_are_printed() {
    let schema = redrive(&["schema"]);
    let json: serde_json::Value = serde_json::from_str(&schema.out).unwrap();
    assert_eq!(json["title"], "redrive.toml");
    assert!(redrive(&["schema", "--format", "markdown"]).out.starts_with("# Configuration"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(redrive(&["completions", shell]).out.contains("explain"), "{shell}");
    }
    assert_eq!(redrive(&["--version"]).out, format!("redrive {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    assert_eq!(redrive(&["explode"]).code, 2);
    assert_eq!(redrive(&[]).code, 2);
    let help = redrive(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains("Examples:") && help.out.contains("explain"), "{}", help.out);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let program = env!("CARGO_BIN_EXE_redrive");
    let mut child = Command::new(program)
        .args(["explain", "list(1s x4000000000)", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_broker_runs_until_it_is_told_to_stop_and_says_where_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_redrive"))
            .args(["broker", "--listen", "127.0.0.1:0", "--topic", "orders:3", "--data"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let address_of = |child: &mut std::process::Child| {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    let mut broker = start();
    let address = address_of(&mut broker);
    assert!(std::net::TcpStream::connect(&address).is_ok(), "{address}");
    let second = ran(&start().wait_with_output().unwrap());
    assert_eq!(second.code, 1);
    assert!(second.err.contains("another broker holds it") && second.err.contains("help:"), "{}", second.err);
    let stopped = Command::new("kill").args(["-TERM", &broker.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let ended = ran(&broker.wait_with_output().unwrap());
    assert_eq!(ended.code, 0);
    assert!(ended.err.ends_with("stopped\n"), "{}", ended.err);
}

#[test]
fn a_broker_that_others_could_reach_is_refused() {
    let ran = redrive(&["broker", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no authentication") && ran.err.contains("--allow-remote"), "{}", ran.err);
    assert_eq!(redrive(&["broker", "--topic", "a b:3"]).code, 2);
    assert_eq!(redrive(&["broker", "--topic", "a:0"]).code, 2);
}

#[test]
fn every_scene_of_the_demo_shows_what_it_should() {
    let ran = redrive(&["demo", "--once"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    let scenes: Vec<_> = ran.out.lines().skip(1).collect();
    let names: Vec<_> = scenes.iter().filter_map(|scene| scene.split(' ').next()).collect();
    assert_eq!(names, ["poison", "flaky", "outage", "early", "letters", "replay"], "{}", ran.out);
    assert!(scenes.iter().all(|scene| scene.ends_with("the same")), "{}", ran.out);
    for told in
        ["redrive dlq groups:", "redrive dlq replay --group f1-", "6 sent, 5 succeeded, 1 failed again"]
    {
        assert!(ran.err.contains(told), "{told} is not in\n{}", ran.err);
    }
}
