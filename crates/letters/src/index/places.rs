//! Letter topics and their partitions, and how far each has been read.

use redrive_core::{Origin, Topic};
use rusqlite::{OptionalExtension as _, params};

use super::Index;
use super::place::{id, offset_of, place_of};
use crate::error::Error;

/// A letter topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicRow {
    pub(crate) id: i64,
    pub(crate) name: Topic,
    /// Kafka's id of it.
    pub(crate) mark: Option<String>,
    pub(crate) is_compacted: bool,
}

/// How far a partition has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) place: i64,
    pub(crate) partition: i32,
    pub(crate) first: i64,
    pub(crate) next: i64,
}

impl Index {
    pub(crate) fn topics(&self) -> Result<Vec<TopicRow>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT id, name, mark, compacted FROM topics")?;
            let mut rows = statement.query([])?;
            let mut topics = Vec::new();
            while let Some(row) = rows.next()? {
                let name: String = row.get(1)?;
                let Ok(name) = name.parse() else { continue };
                topics.push(TopicRow { id: row.get(0)?, name, mark: row.get(2)?, is_compacted: row.get(3)? });
            }
            Ok(topics)
        })
    }

    /// Notes a topic as it is now.
    pub(crate) fn set_topic(
        &mut self,
        name: &Topic,
        mark: Option<&str>,
        is_compacted: bool,
    ) -> Result<i64, Error> {
        self.together(|connection, _| {
            connection.execute(
                "INSERT INTO topics (name, mark, compacted) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET mark = excluded.mark, compacted = excluded.compacted",
                params![name.as_str(), mark, is_compacted],
            )?;
            connection.query_row("SELECT id FROM topics WHERE name = ?1", [name.as_str()], |row| row.get(0))
        })
    }

    /// The partitions of a topic that have been read.
    pub(crate) fn positions(&self, topic: i64) -> Result<Vec<Position>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, partition, first, next FROM places WHERE topic = ?1 ORDER BY partition",
            )?;
            let rows = statement.query_map([topic], |row| {
                Ok(Position {
                    place: row.get(0)?,
                    partition: row.get(1)?,
                    first: row.get(2)?,
                    next: row.get(3)?,
                })
            })?;
            rows.collect()
        })
    }

    /// The place of a partition, which is read from `first` on if it never was.
    pub(crate) fn place(&mut self, topic: i64, partition: i32, first: i64) -> Result<Position, Error> {
        self.together(|connection, _| {
            connection.execute(
                "INSERT OR IGNORE INTO places (topic, partition, first, next) VALUES (?1, ?2, ?3, ?3)",
                params![topic, partition, first],
            )?;
            connection.query_row(
                "SELECT id, first, next FROM places WHERE topic = ?1 AND partition = ?2",
                params![topic, partition],
                |row| Ok(Position { place: row.get(0)?, partition, first: row.get(1)?, next: row.get(2)? }),
            )
        })
    }

    /// Forgets a topic that is no more.
    pub(crate) fn drop_topic(&mut self, topic: i64) -> Result<(), Error> {
        let places = self.positions(topic)?;
        for position in &places {
            self.empty_place(position.place, 0)?;
        }
        self.together(|connection, _| {
            for position in &places {
                // Also what was said of letters that were never read: another topic may get its number.
                let (first, last) = (id(position.place, 0), id(position.place + 1, 0) - 1);
                connection.execute("DELETE FROM states WHERE id BETWEEN ?1 AND ?2", [first, last])?;
            }
            connection.execute("DELETE FROM places WHERE topic = ?1", [topic])?;
            connection.execute("DELETE FROM topics WHERE id = ?1", [topic])?;
            Ok(())
        })
    }

    /// The number of a letter; none if its partition never was read.
    pub(crate) fn number(&self, letter: &Origin) -> Result<Option<i64>, Error> {
        let find = self.connection.prepare_cached(
            "SELECT places.id FROM places JOIN topics ON topics.id = places.topic
             WHERE topics.name = ?1 AND places.partition = ?2",
        );
        let found = find.and_then(|mut find| {
            let place = find.query_row(params![letter.topic.as_str(), letter.partition], |row| row.get(0));
            place.optional()
        });
        let place: Option<i64> = found.map_err(|source| self.failed("read", source))?;
        Ok(place.map(|place| id(place, letter.offset)))
    }

    /// Where a letter of this number lies.
    pub(crate) fn located(&self, number: i64) -> Result<Option<Origin>, Error> {
        let find = self.connection.prepare_cached(
            "SELECT topics.name, places.partition FROM places JOIN topics ON topics.id = places.topic
             WHERE places.id = ?1",
        );
        let found = find.and_then(|mut find| {
            let row = find.query_row([place_of(number)], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)));
            row.optional()
        });
        let found = found.map_err(|source| self.failed("read", source))?;
        Ok(found.and_then(|(topic, partition)| {
            Some(Origin { topic: topic.parse().ok()?, partition, offset: offset_of(number) })
        }))
    }
}
