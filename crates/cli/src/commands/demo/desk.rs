//! The desk of whoever looks after the shop: dead letters by their cause, and letters sent back as a job.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::time::Duration;

use redrive::{Clock, Settings};
use redrive_letters::feed::{Feed, PATTERN, Which};
use redrive_letters::jobs::{Counts, Followed, Kind, Options, Whereto};
use redrive_letters::replay::{self, Destinations, Ended, Progress, Running, Start, Wanted, control};
use redrive_letters::{Fingerprint, Group, Index, Query, State};
use tokio::sync::watch;

use super::shop::{PATIENCE, Result};
use super::teller::Teller;
use crate::human;

pub(super) struct Desk {
    settings: Settings,
    folder: Folder,
    teller: Teller,
}

/// Where the index is; gone with the demo.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is a cache of nothing in the folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Desk {
    pub(super) fn new(settings: &Settings, teller: Teller) -> Self {
        let folder = Folder(env::temp_dir().join(format!("redrive-demo-{}", process::id())));
        Self { settings: settings.clone(), folder, teller }
    }

    /// Failure groups with open letters, told as `redrive dlq groups` does.
    pub(super) async fn groups(&self) -> Result<Vec<Group>> {
        let now = Clock::system().now().wall;
        let groups = self.index().await?.groups(&open(Vec::new()), now)?;
        self.teller.say("   redrive dlq groups:");
        for group in &groups {
            let Group { failure, open, keys, message, .. } = group;
            let keys = human::count(*keys, "key", "keys");
            self.teller.say(&format!("      {failure}: {open} open, {keys}, {message}"));
        }
        Ok(groups)
    }

    /// Sends the letters of a failure group back, some first: how many that were, and what became of all.
    pub(super) async fn replay(
        &self,
        failure: Fingerprint,
        canary: u64,
        reason: &str,
    ) -> Result<(u64, Counts)> {
        self.teller
            .say(&format!("   redrive dlq replay --group {failure} --canary {canary} --reason '{reason}':"));
        let (clock, query) = (Clock::system(), open(vec![failure]));
        let candidates = self.index().await?.candidates_of(&query)?;
        let wanted = Wanted {
            kind: Kind::Replay,
            by: "you@shop".to_owned(),
            reason: reason.to_owned(),
            query: query.to_string(),
            to: Whereto::Usual,
            options: Options { canary: Some(canary), ..Options::default() },
            lanes: None,
        };
        let mut there = self.destinations()?;
        let start = replay::begin(&self.settings, &clock, &wanted, &candidates, &mut there).await?;
        let Start::Begun { job, .. } = start else { return Err("there was nothing to send back".into()) };
        let id = job.id().clone();
        let (_stop, stopped) = watch::channel(false);
        let (tell, progress) = watch::channel(Progress::default());
        let running = Running {
            settings: self.settings.clone(),
            clock: clock.clone(),
            by: wanted.by.clone(),
            patience: PATIENCE,
            stop: stopped,
            progress: tell,
        };
        let run = replay::run(&running, *job, || self.destinations());
        let mut first = 0;
        let ended = tokio::select! {
            ended = run => ended?,
            () = self.watch(progress, &mut first) => return Err("nobody runs the job".into()),
        };
        if ended != Ended::Finished {
            return Err(format!("job {id} did not finish: {ended:?}").into());
        }
        let counts = control::listen(&self.settings, &clock, &id, PATIENCE, |_| {}).await?.counts();
        let Counts { sent, handled, buried, .. } = counts;
        self.teller.say(&format!("      job {id}: {sent} sent, {handled} succeeded, {buried} failed again"));
        Ok((first, counts))
    }

    /// Notes how many were sent before the job waited to hear of them.
    async fn watch(&self, mut progress: watch::Receiver<Progress>, first: &mut u64) {
        while progress.changed().await.is_ok() {
            let Progress { upto, counts, waits, .. } = progress.borrow_and_update().clone();
            if waits.is_some() && *first == 0 {
                self.teller
                    .say(&format!("      {upto} of {} are sent; it waits to hear of them", counts.letters));
                *first = upto;
            }
        }
        // Whoever runs the job has ended, and says so.
        Clock::system().sleep(Duration::MAX).await;
    }

    fn destinations(&self) -> std::result::Result<Destinations, replay::Error> {
        Destinations::new(&self.settings, Whereto::Usual, BTreeMap::new())
    }

    /// The letters, up to date.
    async fn index(&self) -> Result<Index> {
        let which = Which::new(Vec::new(), &[PATTERN.to_owned()])?;
        let (mut index, _) = Feed::new(&self.settings, &self.folder.0, which).catch_up(|_| {}).await?;
        Followed::read(&self.settings).await?.state.hand_over(&mut index)?;
        Ok(index)
    }
}

/// Open letters, of these failure groups if any are named.
fn open(failures: Vec<Fingerprint>) -> Query {
    Query { states: vec![State::Open], failures, ..Query::default() }
}
