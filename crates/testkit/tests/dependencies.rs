//! The dependency checks of `deny.toml`, with nothing but `cargo metadata`: licences, who may depend
//! on what, where crates come from. Advisories need a database that is not fetched here.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Only what this platform builds with: the rest need not have been fetched.
fn metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().expect("rustc runs").stdout;
    let version = String::from_utf8(version).expect("rustc prints text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn rules() -> toml::Table {
    include_str!("../../../deny.toml").parse().expect("deny.toml is TOML")
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().expect("packages").iter()
}

fn texts(value: &toml::Value) -> BTreeSet<&str> {
    value.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text")).collect()
}

/// `MIT OR Apache-2.0`, `A AND B`, parentheses and the older `A/B`.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.replace('/', " OR ");
    let whole = |part: &str| part.trim().trim_start_matches('(').trim_end_matches(')').trim().to_owned();
    // `AND` binds within parentheses at most in what is used: every conjunct must have an allowed choice.
    expression
        .split(" AND ")
        .all(|conjunct| conjunct.split(" OR ").any(|choice| allowed.contains(whole(choice).as_str())))
}

#[test]
fn every_licence_is_one_that_was_chosen() {
    let (metadata, rules) = (metadata(), rules());
    let allowed = texts(&rules["licenses"]["allow"]);
    let refused: Vec<_> = packages(&metadata)
        .filter(|package| !package["license"].as_str().is_some_and(|licence| is_allowed(licence, &allowed)))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "licences that deny.toml does not allow: {refused:#?}");
}

#[test]
fn heavy_dependencies_stay_in_the_crates_that_keep_them() {
    let (metadata, rules) = (metadata(), rules());
    let mut wrong = Vec::new();
    for ban in rules["bans"]["deny"].as_array().expect("a list") {
        let (name, wrappers) = (ban["name"].as_str().expect("a name"), texts(&ban["wrappers"]));
        for package in packages(&metadata) {
            let user = package["name"].as_str().expect("a name");
            let mut dependencies = package["dependencies"].as_array().expect("a list").iter();
            let uses = dependencies.any(|d| d["name"] == name && d["kind"] != "dev");
            if uses && !wrappers.contains(user) && is_ours(package) {
                wrong.push(format!("{user} depends on {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

#[test]
fn every_crate_comes_from_the_registry_or_from_here() {
    let metadata = metadata();
    let strange: Vec<_> = packages(&metadata)
        .filter(|package| {
            !is_ours(package) && package["source"].as_str().is_none_or(|s| !s.starts_with("registry+"))
        })
        .map(|package| package["id"].to_string())
        .collect();
    assert!(strange.is_empty(), "{strange:#?}");
}

#[test]
fn the_core_knows_neither_the_runtime_nor_any_client() {
    let metadata = metadata();
    let nodes = metadata["resolve"]["nodes"].as_array().expect("nodes");
    let id_of = |name: &str| {
        let package = packages(&metadata).find(|package| package["name"] == name).expect("the package");
        package["id"].as_str().expect("an id")
    };
    let mut reached = BTreeSet::from([id_of("redrive-core")]);
    let mut next = vec![id_of("redrive-core")];
    while let Some(id) = next.pop() {
        let node = nodes.iter().find(|node| node["id"] == id).expect("a node");
        for dependency in node["deps"].as_array().expect("deps") {
            let normal =
                dependency["dep_kinds"].as_array().expect("kinds").iter().any(|kind| kind["kind"].is_null());
            let id = dependency["pkg"].as_str().expect("an id");
            if normal && reached.insert(id) {
                next.push(id);
            }
        }
    }
    let names: BTreeSet<_> = packages(&metadata)
        .filter(|package| reached.contains(package["id"].as_str().expect("an id")))
        .map(|package| package["name"].as_str().expect("a name"))
        .collect();
    for banned in ["tokio", "rdkafka", "tokio-postgres", "rusqlite", "axum", "toml"] {
        assert!(!names.contains(banned), "redrive-core depends on {banned}");
    }
    assert!(names.contains("regex"), "the walk found nothing: {names:?}");
}

#[test]
fn a_licence_expression_is_read_as_it_is_meant() {
    let allowed = BTreeSet::from(["MIT", "Unicode-3.0"]);
    assert!(is_allowed("MIT", &allowed));
    assert!(is_allowed("Apache-2.0 OR MIT", &allowed));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(is_allowed("MIT/Apache-2.0", &allowed));
    assert!(!is_allowed("MIT AND GPL-3.0", &allowed));
    assert!(!is_allowed("GPL-3.0", &allowed));
}
