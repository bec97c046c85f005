//! What waits on shelves: lanes that letters closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use redrive::delayed::{Closure, Error as ShelfError, View};
use redrive::{Timestamp, Topic};
use redrive_core::settings::Delay;
use redrive_letters::{Error, Index, Query, Sort};

use super::look::Look;
use crate::exit::Exit;
use crate::{bytes_text, human, screen, when};

/// So many closed lanes are asked for their letters' times.
const ASKED: usize = 200;
/// So many letters of a lane are looked at.
const OF_A_LANE: usize = 100;

/// Reads the shelves of the file; without one, all there are.
pub(super) async fn read(look: &mut Look<'_>, names: &BTreeSet<Topic>) -> Result<Vec<View>, Exit> {
    let is_meant = |name: &&Topic| match look.config {
        Some(config) => {
            let mut all = config.subscriptions.iter().filter(|one| one.delay == Delay::Shelf);
            all.any(|one| one.shelf == **name) || is_of_send(name)
        }
        None => name.as_str().ends_with(".shelf"),
    };
    let shelves: Vec<Topic> = names.iter().filter(is_meant).cloned().collect();
    let mut views = Vec::new();
    for shelf in shelves {
        let shown = {
            let shelf = shelf.clone();
            move |progress: redrive::delayed::Progress| {
                screen::progress(&format!("{shelf}: {} of {} entries", progress.read, progress.of));
            }
        };
        let read = View::read(look.settings, shelf.clone(), &[], Arc::new(|_| true), shown).await;
        screen::progress("");
        match read {
            Ok(view) => views.push(view),
            Err(ShelfError::Kafka(error)) => drop(look.or_unseen(shelf.as_str(), Err::<(), _>(error))?),
            Err(error) => {
                let remedy = "run the version that wrote it, or a later one".to_owned();
                look.add("unseen", &shelf, format!("cannot be read: {}", screen::told(&error)), remedy);
            }
        }
    }
    Ok(views)
}

fn is_of_send(name: &Topic) -> bool {
    name.as_str().starts_with(redrive::send::TOPIC) && name.as_str().ends_with(".shelf")
}

/// Tells of lanes that letters closed.
pub(super) fn closed(look: &mut Look<'_>, view: &View, index: &mut Index) -> Result<(), Error> {
    let closures = view.closures();
    let Some(first) = closures.first() else { return Ok(()) };
    let mut oldest: Option<(Timestamp, &Closure)> = None;
    for closure in closures.iter().take(ASKED) {
        let time = time(index, closure)?;
        if let Some(time) = time.filter(|time| oldest.is_none_or(|(other, _)| *time < other)) {
            oldest = Some((time, closure));
        }
    }
    let (since, closure) = match oldest {
        Some((time, closure)) => (format!(", {}", when::from_now(time, look.now)), closure),
        None => (String::new(), first),
    };
    let counts = redrive::delayed::Counts::of(&view.records(), look.now);
    let lanes = human::count(view.closed_lanes() as u64, "lane is closed", "lanes are closed");
    let held = human::count(counts.held, "record is held", "records are held");
    let lane = bytes_text::cut(&bytes_text::line(&closure.lane), 40);
    let letter = &closure.letter;
    let what = format!("{lanes} by dead letters, {held}; the oldest: {lane} by {letter}{since}");
    let group = view.identity().map(|identity| format!(" --group {}", identity.group)).unwrap_or_default();
    let deed = match closures.len() {
        1 => format!("delayed resolve {letter}{group}"),
        _ => format!("delayed resolve --all --topic {}{group} --reason WHY", letter.topic),
    };
    look.add("lanes", view.shelf(), what, look.command(&deed));
    Ok(())
}

/// When the letter that closed a lane came.
fn time(index: &mut Index, closure: &Closure) -> Result<Option<Timestamp>, Error> {
    let query = Query {
        topics: vec![closure.letter.topic.to_string()],
        lanes: vec![closure.lane.to_vec()],
        sort: Sort::Oldest,
        ..Query::default()
    };
    let page = index.page(&query, OF_A_LANE, None)?;
    let (partition, offset) = (closure.letter.partition, closure.letter.offset);
    let is_it = |letter: &&redrive_letters::Summary| {
        letter.partition == Some(partition) && letter.offset == Some(offset)
    };
    Ok(page.letters.iter().find(is_it).map(|letter| letter.time))
}
