//! What there is to send letters to, learnt as letters come.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::Topic;
use redrive_core::topic::{Purpose, derived};
use redrive_kafka::{Admin, Settings};

use super::Error;
use super::route::{Candidate, Routes};
use crate::Dialect;
use crate::jobs::Whereto;

/// What there is to send letters to.
pub struct Destinations {
    admin: Admin,
    /// Shelves that are not called as they usually are, by source topic and group.
    named: BTreeMap<(Topic, String), Topic>,
    routes: Routes,
    /// All topics that are called like shelves, once they were asked for.
    shelves: Option<Vec<Topic>>,
}

impl Destinations {
    /// Nothing is known yet. `named` are shelves that are not called as they usually are.
    pub fn new(
        settings: &Settings,
        to: Whereto,
        named: BTreeMap<(Topic, String), Topic>,
    ) -> Result<Self, Error> {
        let consumed = named.keys().map(|(topic, _)| topic.clone()).collect();
        let routes = Routes { to: Some(to), consumed, ..Routes::default() };
        Ok(Self { admin: Admin::new(settings)?, named, routes, shelves: None })
    }

    /// What is known.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Whether nothing has to be asked for this letter.
    #[must_use]
    pub fn knows(&self, letter: &Candidate) -> bool {
        let Routes { to, shelves, partitions, .. } = &self.routes;
        if let Some(Whereto::Topic(topic)) = to
            && !partitions.contains_key(topic)
        {
            return false;
        }
        let Some((source, _)) = &letter.source else { return true };
        let pair = |group: &String| shelves.contains_key(&(source.clone(), group.clone()));
        let has_shelf = letter.dialect == Dialect::Redrive;
        partitions.contains_key(source) && (!has_shelf || letter.group.as_ref().is_none_or(pair))
    }

    /// Whether there is no such partition, as it is now.
    pub(super) async fn lacks(&self, topic: &Topic, partition: i32) -> Result<bool, Error> {
        let found = self.admin.outline(std::slice::from_ref(topic)).await?;
        Ok(found.get(topic).is_none_or(|state| !(0..state.partitions).contains(&partition)))
    }

    /// Asks for what these letters need and is not known.
    pub async fn learn(&mut self, letters: &[Candidate]) -> Result<(), Error> {
        let (mut pairs, mut topics) = (BTreeMap::new(), BTreeSet::new());
        topics.extend(match &self.routes.to {
            Some(Whereto::Topic(topic)) => Some(topic.clone()),
            Some(Whereto::Usual | Whereto::Retry | Whereto::Origin) | None => None,
        });
        for letter in letters {
            let Some((source, _)) = &letter.source else { continue };
            if !topics.contains(source) {
                topics.insert(source.clone());
            }
            let (Dialect::Redrive, Some(group)) = (letter.dialect, &letter.group) else { continue };
            let pair = (source.clone(), group.clone());
            if !self.routes.shelves.contains_key(&pair) && !pairs.contains_key(&pair) {
                let usual = || derived(&pair.0, &pair.1, Purpose::Shelf).ok();
                let shelf = self.named.get(&pair).cloned().or_else(usual);
                topics.extend(shelf.clone());
                pairs.insert(pair, shelf);
            }
        }
        topics.retain(|topic| !self.routes.partitions.contains_key(topic));
        let topics: Vec<Topic> = topics.into_iter().collect();
        self.learn_who_consumes(&topics).await?;
        let found = self.admin.outline(&topics).await?;
        for topic in topics {
            let partitions = found.get(&topic).map(|state| state.partitions);
            self.routes.partitions.insert(topic, partitions);
        }
        for (pair, shelf) in pairs {
            let is_there = |shelf: &Topic| self.routes.partitions.get(shelf).copied().flatten().is_some();
            self.routes.shelves.insert(pair, shelf.filter(is_there));
        }
        Ok(())
    }

    /// A topic with a shelf is consumed by a group of Redrive, or was.
    async fn learn_who_consumes(&mut self, topics: &[Topic]) -> Result<(), Error> {
        if topics.is_empty() {
            return Ok(());
        }
        if self.shelves.is_none() {
            let all = self.admin.topics().await?;
            self.shelves = Some(all.into_iter().filter(|topic| topic.as_str().ends_with(".shelf")).collect());
        }
        let shelves = self.shelves.as_deref().unwrap_or_default();
        let has_shelf = |topic: &&Topic| {
            let begins = format!("{topic}.");
            // `TOPIC.GROUP.shelf`: something has to be between.
            shelves.iter().any(|shelf| {
                shelf.as_str().starts_with(&begins) && shelf.as_str().len() > begins.len() + ".shelf".len()
            })
        };
        self.routes.consumed.extend(topics.iter().filter(has_shelf).cloned());
        Ok(())
    }
}
