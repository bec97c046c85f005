//! The section "In any language" of the README, run exactly as it is printed.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../README.md");

/// The blocks of the section in this language, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let section = README.split("\n## In any language\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or(section);
    let begins = format!("```{language}\n");
    section.split(&begins).skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

/// Between the two steps of a person who waits until everything is there.
const WAIT: &str = "i=0; until [ \"$(grep -c attempt out)\" -ge 12 ] || [ $i -ge 300 ]; do i=$((i+1)); sleep 0.1; done\nsleep 1.5\n";

/// Before the first record: one that meets nobody is tried again, and that is printed.
const LISTENS: &str = "i=0; until curl -s -o /dev/null http://127.0.0.1:9001/ || [ $i -ge 300 ]; do i=$((i+1)); sleep 0.1; done\n";

/// A network of its own, where the system allows one: the ports of the README may be taken here.
fn shell(folder: &Path) -> Command {
    let apart = ["-rn", "sh", "-c", "ip link set lo up"];
    let is_allowed = Command::new("unshare").args(apart).output().is_ok_and(|ran| ran.status.success());
    let mut command = match is_allowed {
        true => {
            let mut command = Command::new("unshare");
            command.args(["-rn", "sh", "-c", "ip link set lo up && exec sh ./steps.sh > out 2> err"]);
            command
        }
        false => {
            let mut command = Command::new("sh");
            command.args(["-c", "exec sh ./steps.sh > out 2> err"]);
            command
        }
    };
    let program = Path::new(env!("CARGO_BIN_EXE_redrive")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .env_remove("REDRIVE_CONFIG");
    command
}

#[test]
fn the_section_in_any_language_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let ([python], [toml], [start, look], [printed]) =
        (&blocks("python")[..], &blocks("toml")[..], &blocks("sh")[..], &blocks("text")[..])
    else {
        panic!("the section has another form")
    };
    assert!(python.lines().count() <= 15 && toml.lines().count() <= 12, "it is short");
    fs::write(folder.path().join("endpoint.py"), python).unwrap();
    fs::write(folder.path().join("redrive.toml"), toml).unwrap();
    let (endpoint, run) = start.split_at(start.find("redrive run &\n").expect("the program is started"));
    fs::write(folder.path().join("steps.sh"), format!("{endpoint}{LISTENS}{run}{WAIT}{look}")).unwrap();
    let mut shell = shell(folder.path()).process_group(0).spawn().unwrap();
    let ran = shell.wait().unwrap();
    // What it started goes on behind it, in its group.
    Command::new("kill").args(["-TERM", "--", &format!("-{}", shell.id())]).status().unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (out, err) = (read("out"), read("err"));
    assert!(ran.success(), "{out}\n{err}");
    let sorted = |text: &str| {
        let mut lines: Vec<_> =
            text.lines().filter(|line| line.contains("attempt")).map(ToOwned::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&out), sorted(printed), "{err}");
    for told in [
        "{\"ready\":true,\"reasons\":[]}",
        "redrive_letters_total{topic=\"orders\",group=\"billing\",reason=\"permanent\"} 1",
    ] {
        assert!(out.contains(told), "{told} is not in\n{out}\n{err}");
    }
}
