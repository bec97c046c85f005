//! A job begins: its selection is frozen, written and read back. Of two jobs that begin at once, the one that
//! comes first in the log has the letters they share; the other withdraws and begins anew without them.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use redrive::Clock;
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Outgoing, Settings, Transacting, Transactions};
use tracing::{info, warn};
use uuid::Uuid;

use super::destinations::Destinations;
use super::lanes::{self, Announcer, Lane};
use super::route::Candidate;
use super::{Error, Plan, before};
use crate::jobs::{
    Begun, End, Ending, Followed, Job, JobId, Key, Kind, NoTurn, Options, READ_BACK, Selection, State, Turn,
    Want, Whereto, Wish, forget_when_possible, outgoing, packed, take_turn,
};

/// What somebody wants done with letters.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// What.
    pub kind: Kind,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Which letters, in words.
    pub query: String,
    /// Where to.
    pub to: Whereto,
    /// How.
    pub options: Options,
    /// Lanes that were announced, and the job that they were announced for: they are opened when all is sent.
    pub lanes: Option<(JobId, Vec<Lane>)>,
}

/// A job that this process goes on with; no other can.
pub struct Held {
    /// What holds, itself included: all that was written before this process had it.
    pub followed: Followed,
    pub(crate) grip: Grip,
}

/// What only the process has that goes on with a job.
pub(crate) struct Grip {
    pub(crate) id: JobId,
    pub(crate) transactions: Transactions,
}

/// What came of beginning.
pub enum Start {
    /// It has begun.
    Begun {
        /// It.
        job: Box<Held>,
        /// What it does.
        plan: Plan,
    },
    /// There is nothing to do.
    Nothing(Plan),
}

/// What a replay of these letters would do now.
pub async fn plan(
    settings: &Settings,
    wanted: &Wanted,
    candidates: &[Candidate],
    destinations: &mut Destinations,
) -> Result<Plan, Error> {
    let followed = Followed::read(settings).await?;
    Ok(planned(&followed, wanted, candidates, destinations).await?.0)
}

/// The plan, and the letters whose records were sent back more often than they tell.
async fn planned(
    followed: &Followed,
    wanted: &Wanted,
    candidates: &[Candidate],
    destinations: &mut Destinations,
) -> Result<(Plan, HashMap<Origin, u32>), Error> {
    destinations.learn(candidates).await?;
    let places: Vec<Origin> = candidates.iter().map(|letter| letter.at.clone()).collect();
    let held = followed.state.held(&places, None);
    let mut candidates = candidates.to_vec();
    let more = before::count(&followed.state, &mut candidates);
    Ok((Plan::of(candidates, &held, destinations.routes(), &wanted.options), more))
}

/// Begins a replay of these letters. Where nothing comes of it, lanes that were announced for it are not held for
/// it any longer.
pub async fn begin(
    settings: &Settings,
    clock: &Clock,
    wanted: &Wanted,
    candidates: &[Candidate],
    destinations: &mut Destinations,
) -> Result<Start, Error> {
    let start = try_to_begin(settings, clock, wanted, candidates, destinations).await;
    if !matches!(start, Ok(Start::Begun { .. })) {
        wanted.withdraw(settings).await;
    }
    start
}

async fn try_to_begin(
    settings: &Settings,
    clock: &Clock,
    wanted: &Wanted,
    candidates: &[Candidate],
    destinations: &mut Destinations,
) -> Result<Start, Error> {
    loop {
        let followed = Followed::prepare(settings).await?;
        let (plan, more) = planned(&followed, wanted, candidates, destinations).await?;
        if plan.letters.is_empty() {
            return Ok(Start::Nothing(plan));
        }
        let replays = before::numbered(&plan.letters, &more);
        let silent = plan.silent.values().sum();
        let chosen = (&plan.letters[..], replays, silent);
        let job = write_down(settings, clock, wanted, chosen, Deleting::default(), followed).await?;
        let order = job.followed.state.job(job.id()).map(|job| job.order);
        let held = job.followed.state.held(&plan.letters, order);
        if held.values().all(|hold| hold.sent && wanted.options.again) {
            forget_when_possible(settings, &job.followed.state, clock.now().wall).await;
            return Ok(Start::Begun { job: Box::new(job), plan });
        }
        let by = held.values().map(|hold| hold.job.as_str()).collect::<BTreeSet<_>>();
        info!(job = %job.id(), letters = held.len(), earlier = ?by, "withdrawn: an earlier job has some of its letters");
        // Lanes stay held: it begins anew.
        job.grip.end(clock, Ending::Withdrawn, &wanted.by, 0, Vec::new()).await?;
    }
}

/// Writes a job about these letters, and reads it back.
pub(crate) async fn freeze(
    settings: &Settings,
    clock: &Clock,
    wanted: &Wanted,
    letters: &[Origin],
    followed: Followed,
) -> Result<Held, Error> {
    write_down(settings, clock, wanted, (letters, BTreeMap::new(), 0), Deleting::default(), followed).await
}

/// What a job deletes, beside what it says of letters: all below these.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Deleting {
    /// As it is.
    pub(crate) cuts: Vec<Origin>,
    /// After what is to be kept was written again.
    pub(crate) rewrites: Vec<Origin>,
}

/// The same for a job that deletes.
pub(crate) async fn freeze_deleting(
    (settings, clock): (&Settings, &Clock),
    wanted: &Wanted,
    letters: &[Origin],
    deleting: Deleting,
    followed: Followed,
) -> Result<Held, Error> {
    write_down(settings, clock, wanted, (letters, BTreeMap::new(), 0), deleting, followed).await
}

async fn write_down(
    settings: &Settings,
    clock: &Clock,
    wanted: &Wanted,
    (letters, replays, silent): (&[Origin], BTreeMap<u64, u32>, u64),
    deleting: Deleting,
    mut followed: Followed,
) -> Result<Held, Error> {
    let id = new_id();
    let selection = Selection::of(letters);
    let Places { ends, topics } = places(settings, letters).await?;
    let begun = Begun {
        kind: wanted.kind,
        by: wanted.by.clone(),
        reason: wanted.reason.clone(),
        at: clock.now().wall.millis(),
        query: wanted.query.clone(),
        to: wanted.to.clone(),
        letters: selection.len(),
        chunks: u32::try_from(selection.chunks().len()).unwrap_or(u32::MAX),
        options: wanted.options.clone(),
        ends,
        topics,
        lanes: wanted.lanes.iter().flat_map(|(_, lanes)| lanes.clone()).collect(),
        silent: Some(silent),
        announced: wanted.lanes.as_ref().map(|(job, _)| job.clone()),
        replays,
        cuts: deleting.cuts.iter().map(ToString::to_string).collect(),
        rewrites: deleting.rewrites.iter().map(ToString::to_string).collect(),
    };
    let chunks = (0..).zip(selection.chunks());
    let mut records: Vec<Outgoing> =
        chunks.map(|(chunk, bytes)| packed(&Key::Selection(id.clone(), chunk), bytes.clone())).collect();
    records.push(outgoing(&Key::Begun(id.clone()), &begun));
    let transactions = Transactions::new(settings, &id.transactional_id(), &Transacting::default()).await?;
    let written = transactions.publish(records).await;
    written.map_err(|source| Error::Write { job: id.clone(), source })?;
    if !followed.until(clock, READ_BACK, |state| state.job(&id).is_some()).await? {
        return Err(Error::Unread);
    }
    Ok(Held { followed, grip: Grip { id, transactions } })
}

/// A name for a job, which no other has.
#[must_use]
pub fn new_id() -> JobId {
    JobId::by(Uuid::new_v4().as_u64_pair().0)
}

/// The letters' topics as they are now.
#[derive(Default)]
struct Places {
    /// Where their partitions end.
    ends: BTreeMap<String, i64>,
    /// Their ids.
    topics: BTreeMap<String, String>,
}

async fn places(settings: &Settings, letters: &[Origin]) -> Result<Places, Error> {
    let topics: BTreeSet<Topic> = letters.iter().map(|letter| letter.topic.clone()).collect();
    let topics: Vec<Topic> = topics.into_iter().collect();
    let admin = Admin::new(settings)?;
    let mut places = Places::default();
    for (topic, state) in admin.outline(&topics).await? {
        places.topics.extend(state.id.map(|id| (topic.to_string(), id.to_string())));
        let bounds = admin.bounds(&topic, state.partitions).await?;
        places
            .ends
            .extend((0..).zip(bounds).map(|(partition, (_, end))| (format!("{topic}/{partition}"), end)));
    }
    Ok(places)
}

/// Takes a job over, whoever has it: that process is fenced off, and what it left open is undone. `unattended` says
/// that whoever runs the like of this process may go on with it.
pub async fn take_over(
    settings: &Settings,
    clock: &Clock,
    id: &JobId,
    wish: Option<Wish>,
    unattended: bool,
) -> Result<Held, Error> {
    let transactions = Transactions::new(settings, &id.transactional_id(), &Transacting::default()).await?;
    let turn = Turn { turn: Uuid::new_v4().to_string(), unattended };
    let wish = wish.map(|wish| outgoing(&Key::Wish(id.clone()), &wish));
    let beside: Vec<Outgoing> = wish.into_iter().collect();
    // What others left open hides what was written after it, how far this job came included.
    let is_ours = |state: &State| state.job(id).is_none_or(|job| job.turn.as_ref() == Some(&turn));
    let record = outgoing(&Key::Turn(id.clone()), &turn);
    let followed = take_turn(settings, clock, &transactions, record, beside, is_ours).await;
    let followed = followed.map_err(|error| match error {
        NoTurn::Kafka(error) => error.into(),
        NoTurn::Write(source) => Error::Write { job: id.clone(), source },
        NoTurn::Unread(_) => Error::Unread,
    })?;
    match followed.state.job(id) {
        None => Err(Error::NoJob(id.to_string())),
        Some(job) if job.end.is_some() => Err(Error::Ended(id.clone())),
        Some(_) => Ok(Held { followed, grip: Grip { id: id.clone(), transactions } }),
    }
}

impl Wanted {
    /// Takes back what was announced of lanes: nothing of them is sent.
    pub async fn withdraw(&self, settings: &Settings) {
        let Some((job, held)) = &self.lanes else { return };
        let announcer = Announcer { job, by: &self.by, reason: &self.reason };
        if let Err(error) = lanes::withdraw(settings, announcer, held).await {
            warn!(error = crate::told(&error), lanes = held.len(), "lanes are held until their time is over");
        }
    }
}

impl Held {
    /// Gives the job up before anything of it was sent: its letters are free, and so are the lanes held for them.
    pub async fn give_up(self, clock: &Clock, by: &str) -> Result<(), Error> {
        let lanes = self.job().map(|job| job.begun.opens(&job.id, by)).unwrap_or_default();
        self.grip.end(clock, Ending::Withdrawn, by, 0, lanes).await
    }

    /// The job's name.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.grip.id
    }

    /// The job, as it was when this process took it.
    #[must_use]
    pub fn job(&self) -> Option<&Job> {
        self.followed.state.job(&self.grip.id)
    }
}

impl Grip {
    /// Ends the job where it is, and with it opens lanes: in one transaction.
    pub(crate) async fn end(
        &self,
        clock: &Clock,
        how: Ending,
        by: &str,
        upto: u64,
        lanes: Vec<Outgoing>,
    ) -> Result<(), Error> {
        let end = End { how, at: clock.now().wall.millis(), by: by.to_owned(), upto };
        let mut records = lanes;
        records.push(outgoing(&Key::End(self.id.clone()), &end));
        self.write(records).await
    }

    /// Has it wait, and says why: because of its first letters, maybe.
    pub(crate) async fn pause(&self, clock: &Clock, by: &str, why: &str, canary: bool) -> Result<(), Error> {
        let at = clock.now().wall.millis();
        let wish = Wish { want: Want::Pause, by: by.to_owned(), at, why: why.to_owned(), canary };
        self.write(vec![outgoing(&Key::Wish(self.id.clone()), &wish)]).await
    }

    pub(crate) async fn write(&self, records: Vec<Outgoing>) -> Result<(), Error> {
        let written = self.transactions.publish(records).await;
        written.map_err(|source| Error::Write { job: self.id.clone(), source })
    }
}
