//! What is written down of transactions, and how it reads back.

use std::io;

use bytes::Bytes;

use super::transaction::{Phase, Touched, Transaction};
use crate::journal::fields::{Fields, Parse, malformed};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// Producer ids below this one may have been given out.
    ProducerIds { below: i64 },
    /// The whole state of an id, in place of what was known of it.
    Transaction(Transaction),
}

impl Entry {
    pub(super) fn encode(&self) -> Bytes {
        match self {
            Self::ProducerIds { below } => Fields::default().u8(1).i64(*below).done(),
            Self::Transaction(transaction) => write_transaction(Fields::default().u8(2), transaction).done(),
        }
    }

    pub(super) fn decode(entry: &[u8]) -> io::Result<Self> {
        let mut parse = Parse::new(entry);
        match parse.u8()? {
            1 => Ok(Self::ProducerIds { below: parse.i64()? }),
            2 => Ok(Self::Transaction(read_transaction(&mut parse)?)),
            other => Err(malformed(&format!("transaction entries have no kind {other}"))),
        }
    }
}

fn write_transaction(fields: Fields, transaction: &Transaction) -> Fields {
    let fields = fields
        .str(&transaction.id)
        .i64(transaction.producer_id)
        .i16(transaction.epoch)
        .i64(transaction.last_producer_id)
        .i16(transaction.last_epoch)
        .i32(transaction.timeout_ms)
        .i64(transaction.updated_ms);
    match &transaction.phase {
        Phase::Empty => fields.u8(0),
        Phase::Ongoing { since_ms, touched } => write_touched(fields.u8(1).i64(*since_ms), touched),
        Phase::Prepared { commit, touched } => write_touched(fields.u8(2).bool(*commit), touched),
        Phase::Complete { commit } => fields.u8(3).bool(*commit),
    }
}

fn read_transaction(parse: &mut Parse<'_>) -> io::Result<Transaction> {
    Ok(Transaction {
        id: parse.string()?,
        producer_id: parse.i64()?,
        epoch: parse.i16()?,
        last_producer_id: parse.i64()?,
        last_epoch: parse.i16()?,
        timeout_ms: parse.i32()?,
        updated_ms: parse.i64()?,
        phase: read_phase(parse)?,
    })
}

fn read_phase(parse: &mut Parse<'_>) -> io::Result<Phase> {
    match parse.u8()? {
        0 => Ok(Phase::Empty),
        1 => Ok(Phase::Ongoing {
            since_ms: parse.i64()?,
            touched: read_touched(parse)?,
        }),
        2 => Ok(Phase::Prepared {
            commit: parse.bool()?,
            touched: read_touched(parse)?,
        }),
        3 => Ok(Phase::Complete {
            commit: parse.bool()?,
        }),
        other => Err(malformed(&format!("transactions have no phase {other}"))),
    }
}

fn write_touched(fields: Fields, touched: &Touched) -> Fields {
    fields
        .each(touched.partitions.iter(), |fields, (topic, partition)| {
            fields.str(topic).i32(*partition)
        })
        .each(touched.groups.iter(), |fields, group| fields.str(group))
}

fn read_touched(parse: &mut Parse<'_>) -> io::Result<Touched> {
    Ok(Touched {
        partitions: parse.each(|parse| Ok((parse.string()?, parse.i32()?)))?,
        groups: parse.each(Parse::string)?,
    })
}
