//! What the index keeps of a letter: all that questions are asked about, and no payload.

use bytes::Bytes;
use redrive_core::headers::Name;
use redrive_core::route::Reason;
use redrive_core::{Class, Record, Timestamp};

use super::codes;
use crate::Dialect;
use crate::fingerprint::{Fingerprint, Hash, normalised};
use crate::letter::Letter;

/// How much of what an error says is kept, in bytes.
const MESSAGE: usize = 512;
/// How much of a key or a lane is kept; questions compare what is kept, and a hash of the whole.
pub(crate) const KEY: usize = 256;
/// How much of a name is kept.
const NAME: usize = 256;
/// Above this, the attempts of a kind are not told apart.
pub(crate) const ATTEMPTS: i64 = 32;

/// A letter as it goes into the index.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) offset: i64,
    pub(crate) fingerprint: Fingerprint,
    /// Given where the index may not know the failure group yet.
    pub(crate) failure: Option<Box<Failure>>,
    pub(crate) time: i64,
    /// The timestamp of its record, where that is another.
    pub(crate) stamp: Option<i64>,
    pub(crate) dialect: Dialect,
    pub(crate) class: Option<Class>,
    pub(crate) reason: Option<Reason>,
    pub(crate) attempts: u32,
    pub(crate) replays: u32,
    pub(crate) flags: i64,
    pub(crate) error_type: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) partition: Option<i32>,
    pub(crate) source_offset: Option<i64>,
    pub(crate) size: usize,
    /// The hash of what the error says, its type included; none if it says nothing.
    pub(crate) said: Option<u64>,
    pub(crate) key: Option<Hashed>,
    /// Where it is not the key.
    pub(crate) lane: Option<Hashed>,
    /// The offset of the leader, which is of the same partition.
    pub(crate) leader: Option<i64>,
    pub(crate) filed_under: Option<Hashed>,
    /// On a compacted topic it takes back what lies under its key before it, and is no letter.
    pub(crate) takes_back: bool,
}

/// A key, or the beginning of a long one, with the hash of the whole: whoever writes has enough to do, so it is
/// hashed where it is read.
#[derive(Debug, Clone)]
pub(crate) struct Hashed {
    pub(crate) hash: i64,
    pub(crate) kept: Bytes,
}

/// What all letters of a failure group have in common.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) source: String,
    pub(crate) consumer: Option<String>,
    pub(crate) error_type: Option<String>,
    pub(crate) message: String,
}

impl Entry {
    /// What the index keeps of a record. It keeps neither history nor stack, which would take longest to read.
    pub(crate) fn read(mut record: Record, is_known: impl FnOnce(Fingerprint) -> bool) -> Self {
        record.headers.remove(Name::History.as_str());
        record.headers.remove(Name::ErrorStack.as_str());
        Self::of(Letter::read(&record), is_known)
    }

    /// `is_known` says whether the index knows a failure group for sure.
    pub(crate) fn of(mut letter: Letter, is_known: impl FnOnce(Fingerprint) -> bool) -> Self {
        let normal = normalised(letter.message.as_deref().unwrap_or_default());
        let fingerprint = Fingerprint::with(&letter, &normal);
        let failure = (!is_known(fingerprint)).then(|| Box::new(Failure::of(&letter, normal)));
        let lane_is_key = letter.lane.is_some() && letter.lane == letter.key;
        let mut flags = 0;
        for (is_so, flag) in [
            (letter.is_tombstone(), codes::TOMBSTONE),
            (letter.pointer.is_some(), codes::POINTER),
            (lane_is_key, codes::LANE_IS_KEY),
        ] {
            flags |= if is_so { flag } else { 0 };
        }
        let message = letter.message.take().map(|message| cut(message, MESSAGE));
        let error_type = letter.error_type.take().map(|name| cut(name, NAME));
        let time = letter.time().millis();
        let is_bare = letter.dialect == Dialect::Unknown && letter.is_tombstone();
        Self {
            offset: letter.at.offset,
            fingerprint,
            failure,
            time,
            stamp: letter.timestamp.map(Timestamp::millis).filter(|stamp| *stamp != time),
            dialect: letter.dialect,
            class: letter.class,
            reason: letter.reason,
            attempts: letter.attempts.unwrap_or(0),
            replays: letter.replays,
            flags,
            leader: letter.leader.as_ref().map(|leader| leader.offset),
            partition: letter.source.partition,
            source_offset: letter.source.offset,
            size: letter.payload.unwrap_or(0),
            takes_back: is_bare && letter.key.is_some(),
            said: said(error_type.as_deref(), message.as_deref()),
            message,
            error_type,
            lane: letter.lane.as_ref().filter(|_| !lane_is_key).map(Hashed::of),
            key: letter.key.as_ref().map(Hashed::of),
            filed_under: letter.filed_under.as_ref().map(Hashed::of),
        }
    }
}

impl Hashed {
    /// In memory of its own: many wait to be written, and must not keep the payloads they came with.
    fn of(key: &Bytes) -> Self {
        Self { hash: hash(key), kept: Bytes::copy_from_slice(&key[..key.len().min(KEY)]) }
    }
}

fn said(error_type: Option<&str>, message: Option<&str>) -> Option<u64> {
    let (error_type, message) = (error_type.unwrap_or_default(), message.unwrap_or_default());
    if error_type.is_empty() && message.is_empty() {
        return None;
    }
    let mut hash = Hash::new();
    hash.bytes(error_type.as_bytes());
    hash.bytes(&[0xff]);
    hash.bytes(message.as_bytes());
    Some(hash.end())
}

impl Failure {
    fn of(letter: &Letter, message: String) -> Self {
        let source = letter.source.topic.as_deref().unwrap_or(letter.at.topic.as_str());
        Self {
            source: cut(source.to_owned(), NAME),
            consumer: letter.group.clone().map(|name| cut(name, NAME)),
            error_type: letter.error_type.clone().map(|name| cut(name, NAME)),
            message,
        }
    }
}

/// A hash of a key that fits in few bytes; whoever finds something by it compares.
pub(crate) fn hash(key: &[u8]) -> i64 {
    let mut hash = Hash::new();
    hash.bytes(key);
    hash.end() as i64 & 0x7fff_ffff
}

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let mut end = most;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}
