//! What a person sees who made mistakes: all of them at once, each at its place, and no secret.

use redrive_config::{Level, Report, Surroundings, read};

fn variables(name: &str) -> Option<String> {
    match name {
        "KAFKA_PASSWORD" => Some("hunter2".to_owned()),
        "BAD_TOPIC" => Some("hunter2!".to_owned()),
        _ => None,
    }
}

fn property(name: &str, _: &str) -> Result<(), String> {
    if name == "no.such" { Err("no such property".to_owned()) } else { Ok(()) }
}

const HERE: Surroundings<'_> = Surroundings { variables: &variables, property: &property };

fn refused(text: &str) -> Report {
    match read("redrive.toml", text, HERE) {
        Ok(config) => panic!("accepted:\n{text}\n{config:#?}"),
        Err(report) => report,
    }
}

fn subscription(keys: &str) -> String {
    format!(
        "kafka.brokers = \"localhost:9092\"\n\n[[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"\n{keys}\n"
    )
}

/// The messages and, for each, the piece of the file it points at.
fn shown(text: &str, report: &Report) -> Vec<(String, String)> {
    let problems = report.problems().iter();
    problems.map(|p| (text[p.span.clone()].to_owned(), p.message.clone())).collect()
}

#[test]
fn five_different_mistakes_are_five_errors_in_one_run() {
    let text = r#"[kafka]
brokers = "localhost:9092"
properties = { "sasl.password" = "${KAFKA_PASSWROD}" }

[defaults]
clas = "transient"
retry.outage = "exponential(1s.. x2)"

[[subscription]]
topic = "orders"
group = "payments"
class = "fatal"
delay = "ladder"
order-by = "key"
"#;
    let report = refused(text);
    let places: Vec<_> = shown(text, &report).into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, ["${KAFKA_PASSWROD}", "clas", "", "fatal", "\"key\""], "{report}");
    let page = report.to_string();
    for expected in [
        "redrive.toml:3:35",
        "redrive.toml:6:1",
        "redrive.toml:7:33",
        "redrive.toml:12:10",
        "redrive.toml:14:12",
        "did you mean `class`?",
        "expected the longest delay",
        "`KAFKA_PASSWROD` is not set",
        "`fatal` is not a class",
        "cannot keep the order by key",
    ] {
        assert!(page.contains(expected), "{expected} is not in\n{page}");
    }
    assert_eq!(report.count(Level::Error), 5);
}

#[test]
fn each_mistake_is_told_once_and_pointed_at() {
    #[rustfmt::skip]
    let mistakes = [
        ("concurency = 5", "concurency", "unknown key"),
        ("concurrency = 0", "0", "from 1 to"),
        ("concurrency = \"5\"", "\"5\"", "expected a whole number, found a text"),
        ("concurrency = 99999999999", "99999999999", "from 1 to"),
        ("auto-create = \"yes\"", "\"yes\"", "expected true or false"),
        ("timeout = \"0s\"", "0s", "cannot be zero"),
        ("timeout = \"5\"", "", "expected a unit"),
        ("timeout = 5", "5", "expected a duration, found a whole number"),
        ("retry.sometimes = \"never\"", "sometimes", "is not a class"),
        ("retry.permanent = \"list(1s)\"", "permanent", "not tried again"),
        ("retry.SLE = \"never\"\nretry.transient = \"never\"", "transient", "given twice"),
        ("retry.transient = \"list(5s x)\"", ")", "expected a count"),
        ("exhausted.transient = \"burry\"", "burry", "not a choice"),
        ("exhausted.not-ready = \"shelve\"", "not-ready", "lead back"),
        ("exhausted.outage = \"block\"\nretry.outage = \"list(1s)\"", "outage", "lead back"),
        ("[defaults]\nexhausted.SNBE = \"shelve\"", "SNBE", "lead back"),
        ("order-by = \"keys\"", "keys", "not something to order by"),
        ("followers = \"hold\"\norder-by = \"none\"", "\"hold\"", "needs an order"),
        ("skip-damaged = true\nfollowers = \"hold\"", "true", "skip-damaged needs followers = \"pass\""),
        ("skip-damaged = true\nfollowers = \"bury\"", "true", "skip-damaged needs followers = \"pass\""),
        ("delay = \"ladder\"", "\"ladder\"", "cannot keep the order"),
        ("delay = \"return\"\norder-by = \"none\"\nretry.not-ready = \"list(1s, 2s)\"", "\"return\"", "one delay"),
        ("delay = \"ladder\"\norder-by = \"none\"\nretry.not-ready = \"list(1s) jitter 5%\"", "\"ladder\"", "jitter"),
        ("delay = \"service\"\norder-by = \"none\"\nretry.not-ready = \"list(900d)\"", "\"service\"", "hops"),
        ("delay = \"postgres\"\ndelivery = \"exactly-once\"", "\"exactly-once\"", "database"),
        ("start = \"yesterday\"", "yesterday", "not a place to start"),
        ("surge-guard = \"50% of keys in 30s\"", "keys", "number of keys"),
        ("max-loss = \"200% over 5m\"", "200", "at most 100%"),
        ("handler.http.url = \"localhost\"", "localhost", "not the address"),
        ("handler.http.url = \"htp://localhost\"", "htp://localhost", "does not begin with"),
        ("handler.http.url = \"http://localhost:99999/\"", "http://localhost:99999/", "port"),
        ("handler.http.url = \"http+unix://run/a.sock\"", "http+unix://run/a.sock", "slash"),
        ("handler.http = {}", "{}", "`url` is missing"),
        ("handler = {}", "{}", "names no handler"),
        ("handler.command = {}", "{}", "`argv` is missing"),
        ("handler.command.argv = []", "[]", "names no program"),
        ("handler.command.argv = \"sh\"", "\"sh\"", "expected a list"),
        ("handler.command = { argv = [\"a\"], env = { \"A=B\" = \"\" } }", "\"A=B\"", "not an environment"),
        ("handler = { http = { url = \"http://h\" }, command = { argv = [\"a\"] } }", "command", "here are two"),
        ("mask.json = [\"card\"]", "card", "begins with a slash"),
        ("mask.json = \"/card\"", "\"/card\"", "expected a list"),
        ("mask.patterns = [\"(\"]", "(", "not a regular expression"),
        ("notify = {}", "{}", "`url` is missing"),
        ("notify = { url = \"http://h\", ca = \"a.pem\" }", "ca", "needs TLS"),
        ("handler.http = { url = \"http://h\", version = \"3\" }", "3", "not a version"),
        ("handler.http = { url = \"http://h\", ca = \"a.pem\" }", "ca", "needs TLS"),
        ("handler.http = { url = \"https://h\", certificate = \"a.pem\" }", "certificate", "without its key"),
        ("handler.http = { url = \"http://h\", basic = \"ada\" }", "basic", "colon"),
        ("handler.http = { url = \"http://h\", basic = \"a:b\", bearer = \"t\" }", "basic", "several"),
        ("handler.http = { url = \"http://a:b@h\", bearer = \"t\" }", "bearer", "several"),
        ("handler.http = { url = \"http://h\", headers = { \"a b\" = \"t\" } }", "\"a b\"", "not the name"),
        ("handler.http = { url = \"http://h\", headers = { ce-id = \"t\" } }", "ce-id", "sets this header"),
        ("handler.http = { url = \"http://h\", headers = { a = \"x\\ny\" } }", "a", "one line"),
        ("handler.http = { url = \"http://h\", tombstones = \"drop\" }", "drop", "not a choice"),
        ("handler.http = { url = \"http://h\", batch = {} }", "{}", "`records` is missing"),
        ("handler.http = { url = \"http://h\", batch = { records = 5, format = \"xml\" } }", "xml", "not a format"),
        ("topics.shelf = \"a b\"", "a b", "contains ' '"),
        ("topics.letters = \"orders.pay.shelf\"", "\"orders.pay.shelf\"", "shared"),
        ("[[subscription.classify]]\nstatus = \"900\"\nclass = \"outage\"", "900", "not a status"),
        ("[[subscription.classify]]\nclass = \"outage\"", "\"outage\"", "needs a condition"),
        ("[[subscription.classify]]\npattern = \"(\"\nclass = \"outage\"", "(", "not a regular expression"),
        ("[[subscription.classify]]\ntype = \"*\"\nclass = \"outage\"", "\"*\"", "every type"),
        ("[[subscription.classify]]\nheader = \"=x\"\nclass = \"outage\"", "\"=x\"", "needs a name"),
        ("[[subscription.classify]]\ntype = \"A\"\nclas = \"outage\"", "clas", "unknown key"),
        ("class = \"transent\"", "transent", "not a class"),
        ("topics.letters = \"orders\"", "\"orders\"", "round and round"),
        ("topics.shelf = \"redrive.state\"", "\"redrive.state\"", "belongs to"),
        ("topics.shelf = \"__consumer_offsets\"", "\"__consumer_offsets\"", "belongs to"),
        ("timeout = \"${NOPE:-${ALSO}}\"", "${NOPE:-${ALSO}", "another variable"),
        ("[[subscription.classify]]\ntype = \"A\"", "[[subscription.classify]]", "`class` is missing"),
        ("[[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"", "\"pay\"", "same topic and group"),
        ("[kafka.properties]\n\"no.such\" = 1", "\"no.such\"", "no such property"),
        ("[kafka.properties]\ngroup.id = \"g\"", "id", "group.id"),
        ("[kafka.properties]\na.b = 1\n\"a.b\" = 2", "\"a.b\"", "twice"),
        ("[kafka.properties]\na = []", "a", "must be a text"),
        ("timeout = \"${NOPE}\"", "${NOPE}", "not set"),
        ("timeout = \"${NOPE\"", "${NOPE", "not closed"),
    ];
    for (keys, place, fragment) in mistakes {
        let text = subscription(keys);
        let report = refused(&text);
        let shown = shown(&text, &report);
        assert_eq!(shown.len(), 1, "{report}");
        assert_eq!(shown[0].0, place, "{report}");
        assert!(shown[0].1.contains(fragment), "{report}");
    }
}

#[test]
fn two_subscriptions_whose_topics_collide_are_refused() {
    let text = "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"a.b\"\ngroup = \"c\"\n[[subscription]]\ntopic = \"a\"\ngroup = \"b.c\"\n";
    let report = refused(text);
    assert!(report.to_string().contains("the topic a.b.c.shelf would be shared"), "{report}");
}

#[test]
fn two_subscriptions_whose_retry_topics_collide_are_refused() {
    let one = |topic: &str, group: &str, own: &str| {
        format!(
            "[[subscription]]\ntopic = \"{topic}\"\ngroup = \"{group}\"\ndelay = \"return\"\norder-by = \"none\"\n\
             topics.letters = \"{own}\"\n"
        )
    };
    let text = format!("[kafka]\nbrokers = \"b\"\n{}{}", one("a.b", "c", "x"), one("a", "b.c", "y"));
    assert!(refused(&text).to_string().contains("the topic a.b.c.retry would be shared"));
}

#[test]
fn endless_tries_need_no_end_to_follow_them() {
    read("redrive.toml", &subscription("exhausted.outage = \"block\""), HERE).unwrap();
}

#[test]
fn a_near_name_is_offered() {
    for (keys, near) in [
        ("class = \"transent\"", "`transient`"),
        ("class = \"not_ready\"", "`not-ready`"),
        ("grup = 1", "`group`"),
    ] {
        let report = refused(&subscription(keys)).to_string();
        assert!(report.contains(&format!("did you mean {near}?")), "{report}");
    }
}

#[test]
fn rules_that_can_never_match_are_warned_of() {
    let rules = r#"
[[subscription.classify]]
type = "*Exception"
class = "transient"
[[subscription.classify]]
type = "java.net.SocketTimeoutException"
class = "outage"
[[subscription.classify]]
topic = "payments"
class = "outage"
[[defaults.classify]]
type = "org.example.SomeException"
class = "permanent"
"#;
    let config = read("redrive.toml", &subscription(rules), HERE).unwrap();
    let warnings = config.warnings.to_string();
    assert_eq!(config.warnings.count(Level::Warning), 3, "{warnings}");
    assert_eq!(warnings.matches("can never match").count(), 3, "{warnings}");
    assert!(
        warnings.contains("an earlier one always comes first, type *Exception is transient"),
        "{warnings}"
    );
    assert!(warnings.contains("the subscription consumes orders"), "{warnings}");
}

#[test]
fn a_rule_is_not_blamed_for_a_subscription_that_could_not_be_read() {
    let text = "[kafka]\nbrokers = \"b\"\n[[defaults.classify]]\ntopic = \"b\"\nclass = \"outage\"\n\
                [[subscription]]\ntopic = \"a\"\ngroup = \"g\"\n[[subscription]]\ntopic = \"b\"\n";
    let report = refused(text);
    assert_eq!(report.problems().len(), 1, "{report}");
}

#[test]
fn within_a_subscription_its_topic_goes_without_saying() {
    let rules = "[[subscription.classify]]\ntopic = \"orders\"\nstatus = \"404\"\nclass = \"outage\"\n\
                 [[subscription.classify]]\nstatus = \"404\"\nclass = \"transient\"\n";
    let config = read("redrive.toml", &subscription(rules), HERE).unwrap();
    assert_eq!(config.warnings.count(Level::Warning), 1, "{}", config.warnings);
}

#[test]
fn a_broken_file_is_told_where_it_breaks() {
    for text in [
        "[kafka\nbrokers = 1",
        "[kafka]\nbrokers = ",
        "= 5",
        "[kafka]\nbrokers = \"x\nfoo = 1",
        "\u{feff}[",
        "[[kafka]]",
    ] {
        let report = refused(text);
        assert!(report.to_string().contains("redrive.toml:"), "{report}");
    }
    let report = refused("");
    assert!(report.to_string().contains("`kafka` is missing"), "{report}");
    let report = refused("kafka = 5\nsubscription = {}\n");
    assert_eq!(report.count(Level::Error), 2, "{report}");
}

#[test]
fn no_secret_is_ever_shown() {
    // What stands under [kafka.properties]; each of them is a mistake.
    let properties = [
        r#""sasl.passwrod" = "hunter2"
           "no.such" = 1"#,
        r#""no.such" = "hunter2""#,
        r#""sasl.password": "hunter2""#,
        r#""sasl.password" "hunter2""#,
        r#""sasl.password" = "x"hunter2""#,
        r#""sasl.password" = ["a", "hunter2"]"#,
        r#"sasl.password = hunt,hunter2"#,
        r#"sasl.password = hunter2"#,
        "\"sasl.password\" = \"\"\"hunter2",
        "\"sasl.password\" = '''hunter2\nhunter2=\n",
        "\"ssl.key.pem\" = \"-----BEGIN\nhunter2\nhunter2=\nhunter2 == x\n\"",
        "ssl.key.pem = \"\"\"\nhunter2\n\"\"\"\n\"no.such\" = 1",
        r#"x = { "sasl.username" = "hunter2", "no" = { such = 1 } }
           "no.such" = 1 # hunter2"#,
        r#""no.such" = 1 # hunter2"#,
    ];
    let properties = properties.map(|keys| format!("[kafka]\nbrokers = \"b\"\n[kafka.properties]\n{keys}\n"));
    let elsewhere = [
        "[kafka]\nbrokers = \"b\"\nproperties = { \"sasl.password\" = \"hunter2\", x = [] }\n",
        "[kafka]\nbrokers = \"b\"\nproperties = { \"sasl.password\" = \"hunter2\" \n",
        "[kafka]\nbrokers = \"b\"\npasword = \"hunter2\"\n",
        "[kafka]\nbrokers = 5 # hunter2\n",
        "[kafka]\nbroker = \"b\"\nproperties = { sasl.password = \"hunter2\", \"ssl.key.password\" = 'hunter2', y = 1979-05-27 }\n",
        "[kafka]\nbrokers = \"b\"\n[kafka.properties.ssl.key]\npem = \"hunter2\"\nx = []",
        "[kafka]\nbrokers = \"b\"\n[kafka.properties.sasl.password]\nvalue = [\"hunter2\"]",
    ];
    let keys = [
        "topics.shelf = \"${BAD_TOPIC}\"",
        "class = \"${BAD_TOPIC}\"\nretry.SBE = \"${BAD_TOPIC}\"",
        "handler.http.url = \"ftp://user:hunter2@host/\"",
        "handler.http.url = \"ftp://user:p/hunter2@host/\"",
        "handler.http.url = \"ftp://user:p@hunter2@host/\"",
        "handler = { http = { url = \"http://u:hunter2@h/\", methd = 1 } }",
        "handler.http = { url = \"http://h\", basic = \"hunter2\" }",
        "handler.http = { url = \"http://h\", bearer = \"hunter2\", basic = \"u:hunter2\" }",
        "handler.http = { url = \"http://h\", headers = { x = \"hunter2\\n\" } }",
        "handler.http = { url = \"http://h\", signature-secret = [\"hunter2\"] }",
        "handler.command = { argv = [], env = { x = \"hunter2\" } }",
        "timeout = { a = \"hunter2\" }",
        "timeout = \"${NOPE:-hunter2}\"",
        "order-by = \"header:${KAFKA_PASSWORD}\"\ndelay = \"ladder\"",
        "[[subscription.classify]]\nmessage = \"${KAFKA_PASSWORD}\"\nclass = \"outage\"\n[[subscription.classify]]\nmessage = \"${KAFKA_PASSWORD}\"\nclass = \"outage\"\nx = 1",
        "[[subscription]]\ntopic = \"t\"\ngroup = \"${BAD_TOPIC}\"",
    ];
    let files = properties.into_iter().chain(elsewhere.map(ToOwned::to_owned)).chain(keys.map(subscription));
    for text in files {
        let report = refused(&text);
        let shown = format!("{report}{}{report:?}", report.coloured());
        assert!(!shown.contains("hunter2"), "{text}\n---\n{report}");
    }
    let warned = "[[subscription.classify]]\nmessage = \"${KAFKA_PASSWORD}\"\nclass = \"outage\"\n";
    let config = read("redrive.toml", &subscription(&warned.repeat(2)), HERE).unwrap();
    assert_eq!(config.warnings.count(Level::Warning), 1);
    assert!(!config.warnings.to_string().contains("hunter2"), "{}", config.warnings);
    let text = "[kafka]\nbrokers = \"b\"\nproperties = { \"sasl.password\" = \"${KAFKA_PASSWORD}\", \"sasl.username\" = \"u\" }\n[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\nhandler.http = { url = \"http://u:hunter2@h/\", headers = { x = \"hunter2\" }, signature-secret = \"hunter2\" }";
    let config = read("redrive.toml", text, HERE).unwrap();
    assert_eq!(config.kafka.properties[0].value, "hunter2");
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn the_culprit_itself_and_the_keys_around_it_are_shown() {
    let report = refused(&subscription("timeout = \"5 parsecs\" # why not")).to_string();
    assert!(report.contains("6 | timeout = \"5 parsecs\" # *** ***"), "{report}");
    let report = refused("[kafka]\nbrokers = \"b\"\nx = \n[nex").to_string();
    assert!(report.contains("4 | [nex"), "{report}");
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    let file =
        |server: &str| format!("kafka.brokers = \"b\"\n[server]\n{server}\n[log]\nformat = \"json\"\n");
    let text = file("listen = \"0.0.0.0:8790\"");
    let report = refused(&text);
    assert_eq!(shown(&text, &report)[0].0, "\"0.0.0.0:8790\"", "{report}");
    assert!(report.to_string().contains("server.token"), "{report}");
    let config =
        read("redrive.toml", &file("listen = \"0.0.0.0:1\"\ntoken = \"${KAFKA_PASSWORD}\""), HERE).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(read("redrive.toml", &file("listen = \"[::1]:1\""), HERE).is_ok());
    for wrong in ["listen = \"localhost\"", "listen = \"127.0.0.1\"", "token = \"\""] {
        refused(&file(wrong));
    }
}

#[test]
fn a_name_stands_for_one_subscription() {
    let two =
        subscription("name = \"pay\"") + "[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\nname = \"pay\"\n";
    assert!(refused(&two).to_string().contains("another subscription has the same name"));
    assert!(refused(&subscription("name = \"a/b\"")).to_string().contains("TOPIC/GROUP"));
}

#[test]
fn each_mistake_about_traces_is_told_at_its_place() {
    let text = r#"kafka.brokers = "b"
[traces]
endpoint = "localhost:4318"
sample = 1.5
queue = 0
ratio = 1
headers = { "content-type" = "x", "api key" = "hunter2", fine = "hunter2\n" }
"#;
    let report = refused(text);
    let places: Vec<_> = shown(text, &report).into_iter().map(|(place, _)| place).collect();
    let expected = ["\"localhost:4318\"", "1.5", "0", "ratio", "\"content-type\"", "\"api key\"", "fine"];
    let inner = |place: &str| place.trim_matches('"').to_owned();
    assert_eq!(places.iter().map(|place| inner(place)).collect::<Vec<_>>(), expected.map(inner), "{report}");
    let page = report.to_string();
    assert!(page.contains("expected a number from 0 to 1"), "{page}");
    assert!(!page.contains("hunter2"), "{page}");
    let text =
        "kafka.brokers = \"b\"\n[traces]\nendpoint = \"http://c:4318\"\nsample = \"all\"\nca = \"c.pem\"\n";
    let page = refused(text).to_string();
    assert!(page.contains("expected a number") && page.contains("ca needs TLS"), "{page}");
    assert!(refused("kafka.brokers = \"b\"\n[traces]\nsample = nan\n").to_string().contains("endpoint"));
}
