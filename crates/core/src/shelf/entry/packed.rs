//! A waiting record in as few bytes as it has, in one piece of memory.

use std::sync::Arc;

use bytes::Bytes;

use super::Wait;
use crate::headers::{Headers, Trail};
use crate::record::Record;

/// What stands for a null.
const NULL: u32 = u32::MAX;

impl Wait {
    /// All of it, in one piece.
    #[must_use]
    pub fn pack(&self) -> Box<[u8]> {
        let mut to = Vec::with_capacity(self.record.size() + 512);
        put(&mut to, self.record.key.as_deref());
        put(&mut to, self.record.value.as_deref());
        put_count(&mut to, self.record.headers.iter().len());
        for header in self.record.headers.iter() {
            put(&mut to, Some(header.name.as_bytes()));
            put(&mut to, header.value.as_deref());
        }
        self.trail.pack(&self.record, &mut to);
        to.into_boxed_slice()
    }

    /// What was packed.
    #[must_use]
    pub fn unpack(packed: Box<[u8]>) -> Option<Self> {
        let mut from = Parts(Bytes::from(packed));
        let (key, value) = (from.part()?, from.part()?);
        let mut users = Headers::default();
        for _ in 0..from.count()? {
            let name = String::from_utf8(from.part()??.into()).ok()?;
            users.push(name, from.part()?);
        }
        let trail = Trail::read(&Trail::unpack(&from.0)?).ok()?;
        let record = Record {
            at: trail.origin.clone()?,
            timestamp: trail.origin_timestamp,
            key,
            value,
            headers: users,
        };
        Some(Self { record: Arc::new(record), trail: Arc::new(trail) })
    }
}

fn count(length: usize) -> u32 {
    // Kafka has no record that is larger.
    u32::try_from(length).unwrap_or(NULL - 1)
}

fn put_count(to: &mut Vec<u8>, length: usize) {
    to.extend_from_slice(&count(length).to_be_bytes());
}

fn put(to: &mut Vec<u8>, part: Option<&[u8]>) {
    match part {
        Some(part) => {
            put_count(to, part.len());
            to.extend_from_slice(part);
        }
        None => to.extend_from_slice(&NULL.to_be_bytes()),
    }
}

struct Parts(Bytes);

impl Parts {
    fn count(&mut self) -> Option<u32> {
        (self.0.len() >= 4).then(|| self.0.split_to(4))?.as_ref().try_into().ok().map(u32::from_be_bytes)
    }

    /// The next part, which may be null.
    fn part(&mut self) -> Option<Option<Bytes>> {
        match self.count()? {
            NULL => Some(None),
            length => {
                let length = length as usize;
                (self.0.len() >= length).then(|| Some(self.0.split_to(length)))
            }
        }
    }
}
