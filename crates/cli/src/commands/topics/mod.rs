//! `redrive topics plan|apply`: what topics a configuration needs, and what is done about it.

mod apply;
mod show;

use std::io;

use clap::{Args, Subcommand, ValueEnum};
use redrive::topics::{Plan, look_around, plan, plan_state};
use redrive_config::Subscription;
use redrive_kafka::{Admin, Error, Settings};

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
pub(crate) struct Topics {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what would be created or changed, and why
    #[command(after_help = "Examples:
  redrive topics plan
  redrive topics plan -c staging.toml -o json
  redrive topics plan --check        # for scripts: exit code 3 if there is something to do

Nothing is changed. Topics are compared with their source: as many partitions, no fewer replicas,
room for its largest record and our headers, kept as long as a record may wait.")]
    Plan {
        #[command(flatten)]
        where_: Where,
        /// End with 3 if there is something to do
        #[arg(long)]
        check: bool,
    },
    /// Create and change what the plan shows
    #[command(after_help = "Examples:
  redrive topics apply
  redrive topics apply -c staging.toml --yes

It may be run again at any time: what is done is not done twice. Nothing is made smaller or shorter,
and no topic is deleted.")]
    Apply {
        #[command(flatten)]
        where_: Where,
        /// Do not ask first
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Args)]
struct Where {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

impl Topics {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.command {
                Command::Plan { where_, check } => show_plan(&where_, check).await,
                Command::Apply { where_, yes } => apply::apply(&where_, yes).await,
            }
        })
    }
}

async fn show_plan(where_: &Where, check: bool) -> io::Result<Exit> {
    let file = where_.file.name();
    let planned = match where_.planned().await {
        Ok(planned) => planned,
        Err(exit) => return Ok(exit),
    };
    screen::data(&match where_.output {
        Output::Table => show::table(&planned.plan),
        Output::Json => format!("{:#}\n", show::plan(&planned.plan)),
    })?;
    if planned.plan.is_done() {
        return Ok(Exit::Ok);
    }
    if planned.plan.doable().next().is_some() {
        screen::say(&format!("redrive topics apply -c {file} does it"));
    }
    Ok(if check { Exit::Partly } else { Exit::Ok })
}

/// What is to be done, and where.
struct Planned {
    plan: Plan,
    admin: Admin,
    subscriptions: Vec<Subscription>,
}

impl Where {
    async fn planned(&self) -> Result<Planned, Exit> {
        let config = self.file.read()?;
        let file = self.file.name();
        let Some(settings) = self.cluster.settings(&config) else {
            screen::say(&format!(
                "{file} has brokers = \"embedded\": that broker lives only inside a running process, which makes its topics itself; there is nothing to plan\nhelp: --brokers ADDRESS names a cluster"
            ));
            return Err(Exit::Ok);
        };
        let looked = look_at(&settings, &config.subscriptions).await;
        let (admin, plan) = looked.map_err(|error| cluster::failed(&error, &file))?;
        Ok(Planned { plan, admin, subscriptions: config.subscriptions })
    }
}

async fn look_at(settings: &Settings, subscriptions: &[Subscription]) -> Result<(Admin, Plan), Error> {
    let admin = Admin::new(settings)?;
    let found = look_around(&admin, subscriptions).await?;
    let mut plan = plan(subscriptions, &found);
    plan.steps.extend(plan_state(subscriptions, &found));
    Ok((admin, plan))
}
