//! `redrive acls`: what a worker must be allowed to do, for people, for a shell, for programs.

use std::fmt::Write;
use std::io;

use clap::{Args, ValueEnum};
use redrive::topics::{Acl, Pattern, acls, process_acls};
use redrive_config::Brokers;
use serde_json::{Value, json};

use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive acls
  redrive acls -c prod.toml --principal User:payments -o commands | sh
  redrive acls -o json

These are what a worker needs, and no more. Create, Alter and AlterConfigs are among them only with
auto-create = true; otherwise whoever runs `redrive topics apply` needs them. They are enough for
`redrive delayed`, which itself needs Describe, Read and, to give orders, Write on the shelf, and
Describe on the group.")]
pub(crate) struct Acls {
    #[command(flatten)]
    file: ConfigFile,
    /// Whom it is allowed to
    #[arg(long, default_value = "User:redrive", value_name = "TYPE:NAME", value_parser = principal)]
    principal: String,
    /// The cluster's addresses in the commands, in place of the file's
    #[arg(long, value_name = "ADDRESS")]
    brokers: Option<String>,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Commands,
    Json,
}

fn principal(text: &str) -> Result<String, String> {
    let whole = text.split_once(':').is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty());
    if whole { Ok(text.to_owned()) } else { Err("write TYPE:NAME, such as User:payments".to_owned()) }
}

impl Acls {
    pub(crate) fn run(&self) -> io::Result<Exit> {
        let config = match self.file.read() {
            Ok(config) => config,
            Err(exit) => return Ok(exit),
        };
        let brokers = match (&self.brokers, &config.kafka.brokers) {
            (Some(brokers), _) | (None, Brokers::At(brokers)) => brokers.clone(),
            (None, Brokers::Embedded) => {
                let file = self.file.name();
                screen::say(&format!(
                    "{file} has brokers = \"embedded\": that broker knows no ACLs; there is nothing to allow\nhelp: --brokers ADDRESS names a cluster"
                ));
                return Ok(Exit::Ok);
            }
        };
        let process = if config.subscriptions.is_empty() { Vec::new() } else { process_acls() };
        let all = together(config.subscriptions.iter().flat_map(acls).chain(process));
        screen::data(&match self.output {
            Output::Text => self.text(&all),
            Output::Commands => self.commands(&all, &brokers),
            Output::Json => format!("{:#}\n", self.json(&all)),
        })?;
        Ok(Exit::Ok)
    }

    fn text(&self, all: &[Acl]) -> String {
        let mut text = format!("{} needs\n\n", self.principal);
        let named = |acl: &Acl| format!("{}{}", acl.name, if is_prefix(acl) { "*" } else { "" });
        let width = all.iter().map(|acl| named(acl).len()).max().unwrap_or(0);
        for acl in all {
            let operations = operations(acl).join(", ");
            let _ = writeln!(
                text,
                "{:<16}  {:<width$}  {operations}\n{:<16}  {:<width$}  {}",
                acl.resource.name(),
                named(acl),
                "",
                "",
                acl.why
            );
        }
        if !all.is_empty() {
            text.push_str("\nBrokers before 2.8 also want IdempotentWrite on the cluster.\n");
        }
        text
    }

    fn commands(&self, all: &[Acl], brokers: &str) -> String {
        let tool = format!(
            "kafka-acls.sh --bootstrap-server {} --add --allow-principal {}",
            quoted(brokers),
            quoted(&self.principal)
        );
        let mut text = String::new();
        for acl in all {
            let operations: String =
                operations(acl).iter().map(|operation| format!(" --operation {operation}")).collect();
            let prefixed = if is_prefix(acl) { " --resource-pattern-type prefixed" } else { "" };
            let (kind, name) = (acl.resource.name(), quoted(&acl.name));
            let _ = writeln!(text, "# {}\n{tool}{operations} --{kind} {name}{prefixed}", acl.why);
        }
        if !all.is_empty() {
            let _ = writeln!(
                text,
                "# brokers before 2.8 also want this\n# {tool} --operation IdempotentWrite --cluster"
            );
        }
        text
    }

    fn json(&self, all: &[Acl]) -> Value {
        let one = |acl: &Acl| {
            json!({
                "resource": acl.resource.name(),
                "name": acl.name,
                "pattern": acl.pattern.name(),
                "operations": operations(acl),
                "why": acl.why,
            })
        };
        json!({ "principal": self.principal, "acls": all.iter().map(one).collect::<Vec<_>>() })
    }
}

/// One entry for a resource, however many subscriptions use it.
fn together(all: impl Iterator<Item = Acl>) -> Vec<Acl> {
    let mut merged: Vec<Acl> = Vec::new();
    for acl in all {
        let same = |other: &&mut Acl| {
            (other.resource, &other.name, other.pattern) == (acl.resource, &acl.name, acl.pattern)
        };
        match merged.iter_mut().find(same) {
            None => merged.push(acl),
            Some(other) => {
                other.operations.extend(acl.operations);
                other.operations.sort();
                other.operations.dedup();
            }
        }
    }
    merged
}

fn is_prefix(acl: &Acl) -> bool {
    match acl.pattern {
        Pattern::Literal => false,
        Pattern::Prefixed => true,
    }
}

fn operations(acl: &Acl) -> Vec<&'static str> {
    acl.operations.iter().map(|operation| operation.name()).collect()
}

/// For a shell: as it is where it can mean nothing else.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:,/@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
