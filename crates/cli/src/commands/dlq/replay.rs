//! `redrive dlq replay`: letters sent back, as a job.

use std::io;
use std::time::Duration;

use clap::Args;
use redrive::{Clock, Settings};
use redrive_core::Timestamp;
use redrive_letters::jobs::{Followed, JobId, Kind, Options, Whereto};
use redrive_letters::replay::pace::Share;
use redrive_letters::replay::{self, Candidate, Destinations, Followers, Plan, Rate, Start, Wanted, control};
use redrive_letters::{Index, Query, State, export, journal, query};

use super::asking;
use super::choice::Choice;
use super::place::{Opened, Place, Reached};
use crate::commands::replay::{Driven, drive, failed, shelves};
use crate::exit::Exit;
use crate::output::limit;
use crate::when::length;
use crate::{human, screen};

/// As many letters are named that have to go first.
const LEADERS: usize = 3;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq replay orders.billing.dlq/3/1042                            one letter, to the retry path of its group
  redrive dlq replay --group f1-k3f9q2 --canary 20 --rate 500/s --reason 'fixed in 1.4'
  redrive dlq replay --all --topic orders-dlt --dry-run                   what would happen, and to how many
  redrive dlq replay --all --since 2h --to origin --reason 'bad release'  the original topic: all its groups get them

Where to: `retry` is the shelf of the letter's group, due now: only that group gets it, in the order of its key.
`origin` is the topic it came from: every group that consumes it gets it again. Without --to, letters of Redrive go
to the shelf of their group, and letters of others to their origin. Partition and key stay; the payload is never
changed; the headers of the failure are removed, the user's stay.

It is a job: the letters are frozen when it begins, each is sent exactly once, whatever crashes, and
`redrive replay resume` goes on where it was.
Exit codes: 0 all sent and nothing failed again, 1 failed, 3 some are not, 4 nothing matched.")]
pub(super) struct Replay {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    place: Place,
    /// Where to: retry, origin or the name of a topic
    #[arg(long, value_name = "WHERE", default_value = "usual", hide_default_value = true)]
    to: Whereto,
    /// Only say what would happen, and to how many
    #[arg(long)]
    dry_run: bool,
    /// At most so fast: 50/s, 3000/m
    #[arg(long)]
    rate: Option<Rate>,
    /// Send so many first, wait for what becomes of them, and go on only if they went well
    #[arg(long, value_name = "N", value_parser = some)]
    canary: Option<u64>,
    /// Pause when more of a hundred that were heard of fail again
    #[arg(long, value_name = "PERCENT", default_value = "20%")]
    max_failed: Share,
    /// A letter that was sent back so often is left out [default: `max-replays` in [letters], then 5]
    #[arg(long, value_name = "N")]
    max_replays: Option<u32>,
    /// Send letters again that another job has sent
    #[arg(long)]
    again: bool,
    /// Send letters though the letter that they followed is not sent: where their lane is closed they are letters again
    #[arg(long)]
    ahead: bool,
    /// Leave the letters alone that followed these into the letters; otherwise they are sent after them, in order
    #[arg(long)]
    without_followers: bool,
    /// Why; it is written into the journal. More than single letters want it
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do not ask first
    #[arg(short, long)]
    yes: bool,
    /// How long to wait at the end for what becomes of the letters
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "30s")]
    wait: Duration,
    /// How long to wait for what becomes of the first ones
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "5m")]
    canary_wait: Duration,
    /// Say what would happen as JSON
    #[arg(long, requires = "dry_run")]
    json: bool,
}

/// A number of letters, at least one.
fn some(text: &str) -> Result<u64, String> {
    limit(text).map(|letters| letters as u64)
}

impl Replay {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        Ok(match self.go().await {
            Ok(exit) => exit?,
            Err(exit) => exit,
        })
    }

    async fn go(&self) -> Result<io::Result<Exit>, Exit> {
        let states: &[State] = if self.again { &[State::Open, State::Replayed] } else { &[State::Open] };
        let query = self.choice.query(states, false)?;
        if self.choice.is_bulk() && self.reason.is_empty() && !self.dry_run {
            screen::say(
                "error: why are they sent back?\nhelp: --reason 'fixed in 1.4' is written into the journal",
            );
            return Err(Exit::Usage);
        }
        let Opened { reached, mut index, now, .. } = self.place.open().await?;
        let (settings, config) = (reached.settings.clone(), reached.config.as_ref());
        let worded = self.place.worded(&query);
        let all_there = self.choice.are_all_there(&reached, &mut index)?;
        let asked = query::without_header(&mut index, &settings, &query).await;
        let mut candidates = match asked.map_err(|error| reached.failed(&error))? {
            Some(asked) => index.candidates_of(&asked).map_err(|error| reached.failed(&error))?,
            None => Vec::new(),
        };
        if candidates.is_empty() {
            screen::say(&format!("no letter matches: {worded}"));
        }
        self.say_who_has(&reached, &mut index, &query, now).await?;
        if candidates.is_empty() {
            return Err(Exit::NothingMatched);
        }
        candidates.sort_by(|one, other| one.at.cmp(&other.at));
        candidates.dedup_by(|one, other| one.at == other.at);
        let mut wanted = self.wanted(worded, config.and_then(|config| config.letters.max_replays));
        let named = shelves(config);
        let mut destinations = Destinations::new(&settings, self.to.clone(), named)
            .map_err(|error| failed(&error, &self.place.file.name()))?;
        let followers = match self.without_followers {
            true => Ok(Followers::default()),
            false => Followers::of(&settings, &mut index, &candidates, &mut destinations).await,
        };
        let followers = followers.map_err(|error| failed(&error, &self.place.file.name()))?;
        drop(index);
        let asked = [candidates.as_slice(), followers.letters.as_slice()].concat();
        let plan = replay::plan(&settings, &wanted, &asked, &mut destinations).await;
        let plan = plan.map_err(|error| failed(&error, &self.place.file.name()))?;
        if !followers.letters.is_empty() {
            let count = human::count(followers.letters.len() as u64, "follower", "followers");
            screen::say(&format!("{count} after their leaders among them (--without-followers leaves them)"));
        }
        if self.dry_run {
            let told = self.told(&plan, candidates.len());
            return Ok(told.map(|exit| if exit == Exit::Ok && !all_there { Exit::Partly } else { exit }));
        }
        self.say(&plan);
        if plan.letters.is_empty() {
            return Err(Exit::NothingMatched);
        }
        let question = format!("send {}", human::count(plan.letters.len() as u64, "letter", "letters"));
        if !asking::is_agreed(self.yes || !self.choice.is_bulk(), &question).map_err(|_| Exit::Failed)? {
            return Err(Exit::Usage);
        }
        let mut are_left = !all_there;
        if !followers.lanes.is_empty() {
            let holding = followers.hold(&settings, candidates.len(), &wanted, self.rate).await;
            let holding = holding.map_err(|error| failed(&error, &self.place.file.name()))?;
            for (lane, why) in holding.not() {
                screen::say(&format!("{} is left out with its followers: {why}", lane.leader));
            }
            are_left |= !holding.not().is_empty();
            if holding.held() > 0 {
                let held = human::count(holding.held() as u64, "lane is", "lanes are");
                screen::say(&format!("{held} held until their letters are sent"));
            }
            let mut index = match self.place.open().await {
                Ok(opened) => opened.index,
                Err(exit) => {
                    holding.withdraw(&settings, &wanted).await;
                    return Err(exit);
                }
            };
            holding.gather(&mut index, &mut candidates, &mut wanted);
        }
        let (job, id, plan) = self.begin(&settings, &wanted, &candidates, &mut destinations, &plan).await?;
        let driven = Driven {
            file: self.place.file.name(),
            settings,
            config,
            by: wanted.by.clone(),
            wait: if plan.silent.values().sum::<u64>() < plan.letters.len() as u64 {
                self.wait
            } else {
                Duration::ZERO
            },
        };
        screen::say(&format!("job {id}"));
        let exit = drive(&driven, job).await;
        Ok(exit.map(
            |exit| if exit == Exit::Ok && (are_left || plan.is_partial()) { Exit::Partly } else { exit },
        ))
    }

    fn wanted(&self, query: String, set: Option<u32>) -> Wanted {
        let options = Options {
            rate: self.rate.map(|rate| rate.to_string()),
            canary: self.canary,
            canary_wait_ms: self
                .canary
                .map(|_| u64::try_from(self.canary_wait.as_millis()).unwrap_or(u64::MAX)),
            max_failed: Some(self.max_failed.0),
            max_replays: self.max_replays.or(set),
            again: self.again,
            ahead: self.ahead,
            unattended: false,
        };
        let (by, reason) = (journal::writer(), self.reason.clone());
        Wanted { kind: Kind::Replay, by, reason, query, to: self.to.clone(), options, lanes: None }
    }

    /// Begins the job, and writes that down before anything is sent.
    async fn begin(
        &self,
        settings: &Settings,
        wanted: &Wanted,
        candidates: &[Candidate],
        destinations: &mut Destinations,
        told: &Plan,
    ) -> Result<(replay::Held, JobId, Plan), Exit> {
        let clock = Clock::system();
        let start = replay::begin(settings, &clock, wanted, candidates, destinations).await;
        let (job, plan) = match start.map_err(|error| failed(&error, &self.place.file.name()))? {
            Start::Begun { job, plan } => (*job, plan),
            Start::Nothing(plan) => {
                self.say(&plan);
                return Err(Exit::NothingMatched);
            }
        };
        if plan != *told {
            screen::say("this has changed since; what is sent:");
            self.say(&plan);
        }
        let id = job.id().clone();
        let deed = replay::deeds::begins(&clock, wanted, &id, plan.letters.len() as u64);
        match journal::append(settings, deed).await {
            Ok(_) => Ok((job, id, plan)),
            Err(error) => {
                screen::say(&format!("error: {}", screen::told(&error)));
                match job.give_up(&clock, &wanted.by).await {
                    Ok(()) => screen::say("nothing was sent, and the letters are as they were"),
                    Err(_) => screen::say(&format!(
                        "help: nothing was sent; redrive replay cancel {id} frees the letters"
                    )),
                }
                Err(Exit::Failed)
            }
        }
    }

    /// Says which jobs have letters that would match otherwise: somebody else asked for them, or a process of one's
    /// own was killed.
    async fn say_who_has(
        &self,
        reached: &Reached,
        index: &mut Index,
        query: &Query,
        now: Timestamp,
    ) -> Result<(), Exit> {
        if query.states.is_empty() || query.states.contains(&State::Replaying) {
            return Ok(());
        }
        let asked = Query { states: vec![State::Replaying], ..query.clone() };
        let asked = query::without_header(index, &reached.settings, &asked).await;
        let Some(asked) = asked.map_err(|error| reached.failed(&error))? else { return Ok(()) };
        let letters = index.select(&asked).map_err(|error| reached.failed(&error))?;
        if letters.is_empty() {
            return Ok(());
        }
        let followed = Followed::read(&reached.settings).await;
        let followed = followed.map_err(|error| reached.failed(&error.into()))?;
        for (job, count) in control::holders(&followed.state, &letters) {
            let id = &job.id;
            screen::say(&format!(
                "{}\nhelp: redrive replay watch {id} shows how far it is; redrive replay resume {id} goes on with it where nobody does",
                control::held_by(job, count, now)
            ));
        }
        Ok(())
    }

    fn told(&self, plan: &Plan, matched: usize) -> io::Result<Exit> {
        self.say_what_is_not_heard(plan);
        if self.json {
            let told = export::plan(plan, matched);
            screen::data(&format!("{told:#}\n"))?;
        } else {
            screen::lines(lines(plan, "would be sent to").into_iter().map(|line| format!("{line}\n")))?;
        }
        Ok(match (plan.letters.is_empty(), plan.is_partial()) {
            (true, _) => Exit::NothingMatched,
            (false, true) => Exit::Partly,
            (false, false) => Exit::Ok,
        })
    }

    fn say(&self, plan: &Plan) {
        lines(plan, "to").iter().for_each(|line| screen::say(line));
        self.say_what_is_not_heard(plan);
    }

    /// Nobody should wait for what never comes.
    fn say_what_is_not_heard(&self, plan: &Plan) {
        for (topic, count) in &plan.silent {
            let letters = human::count(*count, "letter", "letters");
            screen::say(&format!(
                "note: nothing will be heard of {letters} in {topic}: no group of Redrive is known to consume it, so the job is over when they are sent"
            ));
        }
        if self.canary.is_some() && !plan.silent.is_empty() {
            screen::say(&format!(
                "note: it pauses when nothing was heard of the first ones for {} (--canary-wait); redrive replay resume sends the others",
                human::rough(self.canary_wait)
            ));
        }
    }
}

fn lines(plan: &Plan, verb: &str) -> Vec<String> {
    let letters = |count: &u64| human::count(*count, "letter", "letters");
    let sent = plan.routes.iter().map(|(route, count)| format!("{} {verb} {route}", letters(count)));
    let left = plan.left_out.iter().map(|(why, count)| format!("{} left out: {why}", letters(count)));
    let mut lines: Vec<String> = sent.chain(left).collect();
    if plan.ahead > 0 {
        lines.push(format!(
            "warning: {} ahead of the letter that they followed: where their lane is closed they become letters again",
            letters(&plan.ahead)
        ));
    }
    if !plan.leaders.is_empty() {
        let named: Vec<String> = plan.leaders.iter().take(LEADERS).map(ToString::to_string).collect();
        let more = plan.leaders.len().saturating_sub(LEADERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!(
            "help: {}{more} first: redrive dlq replay {} sends it, and those that followed it after it",
            named.join(", "),
            named.first().map_or("ID", String::as_str)
        ));
    }
    lines
}
