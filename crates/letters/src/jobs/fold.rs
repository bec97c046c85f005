//! What the records of `redrive.state` come to: the last of each key counts, and where a job begun in the log.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use hashbrown::HashMap;
use redrive_core::{Origin, Record, Topic};

use super::value::{self, Begun, GroupState, Head, Hold, Kind, Turn, What};
use super::{Job, JobId, Key, Moved, Moves, Selection, TopicIds};

/// What holds for all machines: jobs, what became of their letters, what people made of failure groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// Of jobs that have not begun yet, and may never.
    chunks: BTreeMap<JobId, BTreeMap<u32, Bytes>>,
    jobs: BTreeMap<JobId, Job>,
    groups: BTreeMap<String, GroupState>,
    heads: BTreeMap<String, Head>,
    turns: BTreeMap<String, Turn>,
    /// The writers whose last turn came to no entry yet.
    left: BTreeSet<String>,
    /// The letter topics as they are now, as far as somebody asked.
    topics: TopicIds,
}

/// How a letter stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterState {
    /// Nobody has dealt with it.
    Open,
    /// A job is going to send it.
    Replaying(JobId),
    /// A job sent it; what became of it, as far as it is known.
    Replayed(JobId, Option<What>),
    /// Somebody said that it is dealt with.
    Resolved(JobId),
    /// It was deleted, as far as it could be.
    Purged(JobId),
    /// It was erased: nothing of it is told any more, also where Kafka has yet to delete it.
    Erased(JobId),
    /// It lies elsewhere now.
    Moved(Origin),
}

impl State {
    /// Takes a record in. What is not of these, or of a version that is not known, says nothing.
    pub fn take(&mut self, record: &Record) {
        let Some(key) = record.key.as_deref().and_then(Key::read) else { return };
        let value = record.value.as_deref();
        match key {
            Key::Group(fingerprint) => replace(&mut self.groups, fingerprint, value),
            Key::JournalHead(writer) => {
                self.left.remove(&writer);
                replace(&mut self.heads, writer, value);
            }
            Key::JournalTurn(writer) => {
                self.left.insert(writer.clone());
                replace(&mut self.turns, writer, value);
            }
            Key::Selection(id, chunk) => match &record.value {
                Some(packed) => drop(self.chunks.entry(id).or_default().insert(chunk, packed.clone())),
                None => self.forget(&id),
            },
            Key::Begun(id) => match value {
                Some(value) => self.begin(id, record.at.offset, value),
                None => self.forget(&id),
            },
            Key::Mark(id) => {
                self.change(&id, |job| job.mark = value.and_then(value::read).unwrap_or_default());
            }
            Key::Wish(id) => self.change(&id, |job| job.wish = value.and_then(value::read)),
            Key::End(id) => self.change(&id, |job| job.end = value.and_then(value::read)),
            Key::Turn(id) => self.change(&id, |job| job.turn = value.and_then(value::read)),
            Key::Moved(id, some) => {
                let moved = record.value.clone().and_then(|value| Moved::read(value).ok());
                self.change(&id, |job| match moved {
                    Some(moved) => drop(job.moved.insert(some, moved)),
                    None => drop(job.moved.remove(&some)),
                });
            }
            Key::Outcome(id, number) => {
                self.change(&id, |job| job.tell(number, value.and_then(value::read)));
            }
        }
    }

    /// A job begins once, with all of its selection before it; all else comes after that.
    fn begin(&mut self, id: JobId, order: i64, value: &[u8]) {
        if self.jobs.contains_key(&id) {
            return;
        }
        let chunks = self.chunks.remove(&id).unwrap_or_default();
        let Some(begun) = value::read::<Begun>(value) else { return };
        let are_all = chunks.keys().copied().eq(0..begun.chunks);
        let selection = Selection::read(chunks.into_values().collect()).ok();
        if let Some(selection) = selection.filter(|selection| are_all && selection.len() == begun.letters) {
            self.jobs.insert(id.clone(), Job::new(id, order, begun, selection));
        }
    }

    fn forget(&mut self, id: &JobId) {
        self.chunks.remove(id);
        self.jobs.remove(id);
    }

    fn change(&mut self, id: &JobId, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(id) {
            change(job);
        }
    }

    /// The letter topics of all jobs, as far as those say which they were.
    #[must_use]
    pub fn topics(&self) -> Vec<Topic> {
        let names: BTreeSet<&String> = self.jobs.values().flat_map(|job| job.begun.topics.keys()).collect();
        names.into_iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Makes known which topics there are now: what was said of letters in others of their names is not said of
    /// theirs.
    pub fn know(&mut self, topics: TopicIds) {
        self.topics = topics;
    }

    /// The topics of a job that are others now than they were.
    pub(crate) fn anew(&self, job: &Job) -> Vec<Topic> {
        self.topics.anew(&job.begun)
    }

    /// The offsets of a partition whose letters are erased, or are about to be by this job.
    pub(crate) fn erased_in(&self, topic: &Topic, partition: i32, by: &JobId) -> BTreeSet<i64> {
        let moves = self.moves();
        let mut erased = BTreeSet::new();
        for job in self.jobs.values().filter(|job| job.begun.kind == Kind::Erase) {
            let letters = about(job, &self.topics, &moves)
                .filter(|(number, _)| job.id == *by || job.has_done(*number))
                .filter(|(_, letter)| letter.partition == partition && letter.topic == *topic);
            erased.extend(letters.map(|(_, letter)| letter.offset));
        }
        erased
    }

    /// The job that is about to do something with letters of a partition below an offset: one that sends some of them,
    /// or one before this that writes them again.
    pub(crate) fn busy_below(&self, below: &Origin, order: i64) -> Option<&Job> {
        let moves = self.moves();
        let is_here = |letter: &Origin| letter.partition == below.partition && letter.topic == below.topic;
        let sends = |job: &Job| {
            let mut letters = about(job, &self.topics, &moves);
            job.sends()
                && job.end.is_none()
                && letters.any(|(number, at)| job.will_do(number) && is_here(&at) && at.offset < below.offset)
        };
        let rewrites = |job: &Job| {
            let mut rewrites = job.begun.rewrites.iter().filter_map(|text| text.parse().ok());
            job.end.is_none() && job.order < order && rewrites.any(|at| is_here(&at))
        };
        self.jobs().into_iter().find(|job| sends(job) || rewrites(job))
    }

    /// The letters that were erased by jobs that were asked for in these words, wherever they may be by now.
    #[must_use]
    pub fn erased_by(&self, query: &str) -> BTreeSet<Origin> {
        let moves = self.moves();
        let is_it = |job: &&Job| job.begun.kind == Kind::Erase && job.begun.query == query;
        let mut erased = BTreeSet::new();
        for job in self.jobs.values().filter(is_it) {
            let done = about(job, &self.topics, &moves).filter(|(number, _)| job.has_done(*number));
            erased.extend(done.map(|(_, letter)| letter));
        }
        erased
    }

    /// Where letters lie now that were written again.
    #[must_use]
    pub fn moves(&self) -> Moves {
        self.moves_in(&self.topics)
    }

    /// The same where these are the topics.
    pub(super) fn moves_in(&self, topics: &TopicIds) -> Moves {
        let mut moves = Moves::default();
        for job in self.jobs.values().filter(|job| !job.moved.is_empty()) {
            let anew = topics.anew(&job.begun);
            job.moved.values().for_each(|moved| moves.take(moved, &anew));
        }
        moves
    }

    /// The job of this name.
    #[must_use]
    pub fn job(&self, id: &JobId) -> Option<&Job> {
        self.jobs.get(id)
    }

    /// All jobs, the earliest first.
    #[must_use]
    pub fn jobs(&self) -> Vec<&Job> {
        let mut jobs: Vec<&Job> = self.jobs.values().collect();
        jobs.sort_by_key(|job| job.order);
        jobs
    }

    /// The jobs whose ids begin like this.
    pub fn jobs_like<'a>(&'a self, begins: &'a str) -> impl Iterator<Item = &'a Job> {
        self.jobs.values().filter(move |job| job.id.as_str().starts_with(begins))
    }

    /// What people made of a failure group.
    #[must_use]
    pub fn group(&self, fingerprint: &str) -> Option<&GroupState> {
        self.groups.get(fingerprint)
    }

    /// What people made of failure groups, by fingerprint.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &GroupState)> {
        self.groups.iter().map(|(fingerprint, state)| (fingerprint.as_str(), state))
    }

    /// The last entries of writers in the journal.
    #[must_use]
    pub fn heads(&self) -> &BTreeMap<String, Head> {
        &self.heads
    }

    /// Which process of a writer writes to the journal next.
    #[must_use]
    pub fn turn(&self, writer: &str) -> Option<&Turn> {
        self.turns.get(writer)
    }

    /// Whether a process of a writer has its turn and has not written yet, as far as it is known: it may be gone.
    #[must_use]
    pub fn has_turn_left(&self, writer: &str) -> bool {
        self.left.contains(writer)
    }

    /// Which of these letters an earlier job holds: one that is going to send it, or that has sent it. `before` is
    /// the place of the job that asks; without it all jobs are earlier.
    #[must_use]
    pub fn held(&self, letters: &[Origin], before: Option<i64>) -> HashMap<Origin, Hold> {
        let moves = self.moves();
        // Who asks may not know yet that a letter lies elsewhere.
        let now = |letter: &Origin| moves.now(letter.clone());
        let mut asked: HashMap<Origin, Option<Hold>> =
            letters.iter().map(|letter| (now(letter), None)).collect();
        let earlier = |job: &Job| before.is_none_or(|before| job.order < before);
        for job in self.jobs().into_iter().filter(|job| job.sends() && earlier(job)) {
            for (number, letter) in about(job, &self.topics, &moves) {
                let Some(hold) = asked.get_mut(&letter) else { continue };
                let (sent, sends) = (job.has_done(number), job.will_do(number));
                // One that is still to be sent matters more than that it was sent before.
                if sends || sent && hold.is_none() {
                    *hold = Some(Hold { job: job.id.clone(), number, sent: !sends });
                }
            }
        }
        let hold = |letter: &Origin| Some((letter.clone(), asked.get(&now(letter))?.clone()?));
        letters.iter().filter_map(hold).collect()
    }

    /// How often jobs sent each of these letters; those that are not in the answer were never sent. What `except`
    /// sent does not count.
    #[must_use]
    pub fn sends(&self, letters: &[Origin], except: Option<&JobId>) -> HashMap<Origin, u32> {
        let moves = self.moves();
        let now = |letter: &Origin| moves.now(letter.clone());
        let mut sent: HashMap<Origin, u32> = letters.iter().map(|letter| (now(letter), 0)).collect();
        for job in self.jobs.values().filter(|job| job.sends() && except != Some(&job.id)) {
            for (number, letter) in about(job, &self.topics, &moves) {
                if let Some(times) = sent.get_mut(&letter)
                    && job.has_done(number)
                {
                    *times += 1;
                }
            }
        }
        let times = |letter: &Origin| Some((letter.clone(), *sent.get(&now(letter))?));
        letters.iter().filter_map(times).filter(|(_, times)| *times > 0).collect()
    }

    /// How these letters stand; those that are not in the answer are open.
    #[must_use]
    pub fn letters(&self, letters: &[Origin]) -> HashMap<Origin, LetterState> {
        self.letters_in(letters, &self.topics)
    }

    /// The same where these are the topics.
    pub(super) fn letters_in(&self, letters: &[Origin], topics: &TopicIds) -> HashMap<Origin, LetterState> {
        let mut states: HashMap<Origin, LetterState> =
            letters.iter().map(|letter| (letter.clone(), LetterState::Open)).collect();
        let moves = self.moves_in(topics);
        for job in self.jobs() {
            for (number, letter) in about(job, topics, &moves) {
                if let (Some(state), Some(now)) = (states.get_mut(&letter), state(job, number))
                    // What is erased stays so, whoever did not know it yet.
                    && !matches!(state, LetterState::Erased(_))
                {
                    *state = now;
                }
            }
        }
        for (letter, state) in &mut states {
            if moves.has_left(letter) {
                *state = LetterState::Moved(moves.now(letter.clone()));
            }
        }
        states.retain(|_, state| *state != LetterState::Open);
        states
    }
}

/// The letters that a job is about, with their numbers, where they are now: not those of topics that are others now.
pub(super) fn about<'a>(
    job: &'a Job,
    topics: &TopicIds,
    moves: &'a Moves,
) -> impl Iterator<Item = (u64, Origin)> + 'a {
    let anew = topics.anew(&job.begun);
    let letters = (0..).zip(job.selection.iter()).filter(move |(_, letter)| !anew.contains(&letter.topic));
    letters.map(|(number, letter)| (number, moves.now(letter)))
}

/// What a job makes of its letter of this number; none if it leaves it as it is.
#[must_use]
pub fn state(job: &Job, number: u64) -> Option<LetterState> {
    let id = || job.id.clone();
    match job.begun.kind {
        Kind::Replay if job.will_do(number) => Some(LetterState::Replaying(id())),
        _ if !job.has_done(number) => None,
        Kind::Replay => Some(LetterState::Replayed(id(), job.outcome(number))),
        Kind::Resolve => Some(LetterState::Resolved(id())),
        Kind::Purge => Some(LetterState::Purged(id())),
        Kind::Erase => Some(LetterState::Erased(id())),
    }
}

fn replace<T: serde::de::DeserializeOwned>(map: &mut BTreeMap<String, T>, key: String, value: Option<&[u8]>) {
    match value.map(value::read) {
        Some(Some(value)) => drop(map.insert(key, value)),
        // The last one counts, also if it cannot be read here.
        Some(None) | None => drop(map.remove(&key)),
    }
}
