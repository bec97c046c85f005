//! The program `redrive`: one file per command. Data goes to stdout, everything else to stderr.

mod bytes_text;
mod cluster;
mod commands;
mod config_file;
mod exit;
mod handler_text;
mod human;
mod letters;
mod output;
mod screen;
mod table;
mod when;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Exit;

#[global_allocator]
static ALLOCATOR: redrive_allocator::MiMalloc = redrive_allocator::MiMalloc;

/// Reliable Kafka consumption: a record that fails is classified, retried in the way that fits its
/// failure, kept in order and, when nothing helps, dead-lettered where a person can find it.
#[derive(Parser)]
#[command(name = "redrive", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  redrive demo                                     what it is, in a minute
  redrive run -c redrive.toml                      push records to endpoints in any language
  redrive status -c redrive.toml                   what is wrong now, and what mends it
  redrive explain 'exponential(1s..60s x2, 120)'   what a retry policy does
  redrive check -c redrive.toml                    what is wrong with a file, or what it means
  redrive topics plan -c redrive.toml              what would be created or changed, and why
  redrive acls -c redrive.toml -o commands         what a worker must be allowed to do
  redrive delayed list -c redrive.toml             what waits, for what and until when
  redrive dlq groups -c redrive.toml               what fails, by its cause
  redrive send orders --key 7 --value hi --in 10m  a record for a topic, at a time
  redrive broker --data ./data --topic orders:3    a Kafka broker for this machine
  redrive completions bash > /etc/bash_completion.d/redrive

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done, 4 nothing matched, 78 invalid configuration.";

#[derive(Subcommand)]
enum Command {
    /// Run the subscriptions of a configuration, until it is told to stop
    Run(commands::run::Run),
    /// Say what is wrong now, and what mends it
    Status(Box<commands::status::StatusCommand>),
    /// Start nothing new of a subscription, on every instance and across restarts
    Pause(commands::pause::PauseCommand),
    /// Let a paused subscription go on, on every instance
    Resume(commands::pause::Resume),
    /// Check a configuration file and say what it means
    Check(commands::check::Check),
    /// Show the schedule of a retry policy
    Explain(commands::explain::Explain),
    /// Watch a small shop in which things go wrong, on a broker inside this process
    Demo(commands::demo::Demo),
    /// Plan, create and mend the topics of a configuration
    Topics(commands::topics::Topics),
    /// Print the ACLs that a worker needs, and no more
    Acls(commands::acls::Acls),
    /// See what waits on a shelf, and release, reschedule or cancel it
    Delayed(Box<commands::delayed::DelayedCommand>),
    /// Find dead letters, whoever wrote them, send them back or clean them up
    Dlq(Box<commands::dlq::DlqCommand>),
    /// Send a record to a topic, now or at a time
    Send(Box<commands::send::Send>),
    /// See the jobs that send letters back, and steer them from any machine
    Replay(Box<commands::replay::ReplayCommand>),
    /// Show who did what to letters, when and why, and find out whether that was tampered with
    Journal(commands::journal::JournalCommand),
    /// Run the embedded broker on its own
    Broker(commands::broker::BrokerCommand),
    /// Print the JSON schema of the configuration file, for editors
    Schema(commands::schema::Schema),
    /// Print completions for a shell
    Completions(commands::completions::Completions),
}

fn main() -> ExitCode {
    redrive_allocator::keep_for_a_moment();
    let run = match Cli::parse().command {
        Command::Run(run) => run.run(),
        Command::Status(status) => status.run(),
        Command::Pause(pause) => pause.run(),
        Command::Resume(resume) => resume.run(),
        Command::Check(check) => check.run(),
        Command::Explain(explain) => explain.run(),
        Command::Demo(demo) => demo.run(),
        Command::Topics(topics) => topics.run(),
        Command::Acls(acls) => acls.run(),
        Command::Delayed(delayed) => delayed.run(),
        Command::Dlq(dlq) => dlq.run(),
        Command::Send(send) => send.run(),
        Command::Replay(replay) => replay.run(),
        Command::Journal(journal) => journal.run(),
        Command::Broker(broker) => broker.run(),
        Command::Schema(schema) => schema.run(),
        Command::Completions(completions) => completions.run(),
    };
    run.unwrap_or_else(|error| screen::failed(&error)).into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
