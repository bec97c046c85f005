//! The values of entries that are not records: JSON where a person may want to read it, LEB128 where
//! there may be thousands of numbers.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Announced, Beginning, Checkpoint, Closed, Done, Identity};
use crate::headers::LOG;
use crate::offsets::{Progress, leb128};
use crate::record::Record;

#[derive(Serialize, Deserialize)]
struct ClosedBody {
    origin: i64,
    completes: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    announced: Option<Announced>,
}

pub(super) fn json<T: DeserializeOwned>(record: &Record) -> Result<T, String> {
    serde_json::from_slice(record.value.as_deref().unwrap_or_default()).map_err(|error| error.to_string())
}

pub(super) fn json_of<T: Serialize>(value: &T) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("plain fields are always JSON"))
}

pub(super) fn identity(record: &Record) -> Result<Identity, String> {
    serde_json::from_slice(record.key.as_deref().unwrap_or_default()).map_err(|error| error.to_string())
}

pub(super) fn identity_of(identity: &Identity) -> Bytes {
    json_of(identity)
}

pub(super) fn closed(record: &Record) -> Result<Closed, String> {
    let ClosedBody { origin, completes, announced } = json(record)?;
    let lane = record.key.clone().ok_or("it names no lane")?;
    Ok(Closed { origin, lane, completes, announced })
}

pub(super) fn closed_of(closed: &Closed) -> Bytes {
    let Closed { origin, completes, ref announced, .. } = *closed;
    json_of(&ClosedBody { origin, completes, announced: announced.clone() })
}

/// Whether it begins, the length of the progress, the progress, then each that is done by the distance to
/// the one before.
pub(super) fn checkpoint_of(checkpoint: &Checkpoint) -> Bytes {
    let progress = checkpoint.progress.encode();
    let mut bytes = Vec::with_capacity(progress.len() + 8 + 4 * checkpoint.done.len());
    bytes.push(u8::from(checkpoint.begins));
    leb128::put(&mut bytes, progress.len() as u64);
    bytes.extend_from_slice(&progress);
    let mut before = 0_i64;
    for done in &checkpoint.done {
        leb128::put(&mut bytes, leb128::zigzag(done.origin.wrapping_sub(before)));
        leb128::put(&mut bytes, done.attempt.into());
        leb128::put(&mut bytes, done.replay.into());
        before = done.origin;
    }
    bytes.into()
}

pub(super) fn checkpoint(record: &Record) -> Result<Checkpoint, String> {
    let identity = identity(record)?;
    let bytes = record.value.as_deref().unwrap_or_default();
    let short = || "it ends too early".to_owned();
    let begins = match bytes.first() {
        Some(0) => false,
        Some(1) => true,
        Some(_) => return Err("its first byte is neither 0 nor 1".to_owned()),
        None => return Err(short()),
    };
    let mut at = 1;
    let length = leb128::take(bytes, &mut at).and_then(|length| usize::try_from(length).ok());
    let end = length.and_then(|length| at.checked_add(length)).ok_or_else(short)?;
    let progress = bytes.get(at..end).ok_or_else(short)?;
    let progress = Progress::decode(progress).map_err(|error| error.to_string())?;
    at = end;
    let (mut done, mut before) = (Vec::new(), 0_i64);
    while at < bytes.len() {
        let mut number = || leb128::take(bytes, &mut at).ok_or_else(short);
        let origin = before.wrapping_add(leb128::unzigzag(number()?));
        let attempt = u32::try_from(number()?).map_err(|error| error.to_string())?;
        let replay = u32::try_from(number()?).map_err(|error| error.to_string())?;
        done.push(Done { origin, attempt, replay });
        before = origin;
    }
    Ok(Checkpoint { identity, progress, begins, done, log: beginning(record)? })
}

/// Where the log begins, and where it is about to be cut.
pub(super) fn beginning_of(log: Beginning) -> Bytes {
    match log.cut {
        Some(cut) => format!("{} {cut}", log.at).into(),
        None => log.at.to_string().into(),
    }
}

fn beginning(record: &Record) -> Result<Option<Beginning>, String> {
    if record.headers.last(LOG).is_none() {
        return Ok(None);
    }
    let read = || {
        let mut words = record.headers.text(LOG)?.split(' ').map(|word| word.parse::<i64>().ok());
        let at = words.next()??;
        let cut = match words.next() {
            Some(cut) => Some(cut?),
            None => None,
        };
        words.next().is_none().then_some(Beginning { at, cut })
    };
    read().map(Some).ok_or_else(|| format!("its header `{LOG}` names no places"))
}
