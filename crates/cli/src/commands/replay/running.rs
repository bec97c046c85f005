//! Runs a job in this process until it ends or stops, and tells how far it is and what became of it.

use std::io;
use std::time::Duration;

use redrive::{Clock, Settings};
use redrive_config::Config;
use redrive_letters::jobs::{Counts, Job, Whereto};
use redrive_letters::journal;
use redrive_letters::replay::{self, Destinations, Ended, Held, Progress, Running, control};
use tokio::sync::watch;

use super::bar::Bar;
use super::{failed, shelves, words};
use crate::exit::Exit;
use crate::{human, screen};

/// As many reasons of letters that did not go well are told.
const WHYS: usize = 10;

/// How long to wait for the first letters where the job does not say.
const PATIENCE: Duration = Duration::from_secs(300);

/// How a job is driven.
pub(crate) struct Driven<'a> {
    /// What the file of the configuration is called.
    pub(crate) file: String,
    pub(crate) settings: Settings,
    pub(crate) config: Option<&'a Config>,
    /// Who drives it.
    pub(crate) by: String,
    /// How long to wait for what becomes of what was sent.
    pub(crate) wait: Duration,
}

/// Runs the job to its end.
pub(crate) async fn drive(driven: &Driven<'_>, job: Held) -> io::Result<Exit> {
    let (clock, id) = (Clock::system(), job.id().clone());
    let to = job.job().map_or(Whereto::Usual, |job| job.begun.to.clone());
    let (stop, stopped) = watch::channel(false);
    let (tell, mut progress) = watch::channel(Progress::default());
    let running = Running {
        settings: driven.settings.clone(),
        clock: clock.clone(),
        by: driven.by.clone(),
        patience: PATIENCE,
        stop: stopped,
        progress: tell,
    };
    let named = shelves(driven.config);
    let destinations = || Destinations::new(&driven.settings, to.clone(), named.clone());
    let mut bar = Bar::new(&clock);
    let mut run = std::pin::pin!(replay::run(&running, job, destinations));
    let mut stopping = std::pin::pin!(redrive::stop_signal());
    let ended = loop {
        tokio::select! {
            ended = &mut run => break ended,
            () = &mut stopping, if !*stop.borrow() => {
                screen::progress("");
                screen::say("stopping after what is on its way; once more ends it at once, and loses nothing either");
                stop.send_replace(true);
            }
            Ok(()) = progress.changed() => bar.show(&progress.borrow_and_update()),
        }
    };
    screen::progress("");
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let exit = failed(&error, &driven.file);
            screen::say(&format!("help: redrive replay resume {id} goes on from exactly where it was"));
            return Ok(exit);
        }
    };
    let wait = if ended == Ended::Finished { driven.wait } else { Duration::ZERO };
    let shown = |job: &Job| {
        let counts = job.counts();
        let waits = Some("waits to hear what became of them".to_owned());
        bar.show(&Progress { from: 0, upto: job.mark.upto, counts, waits });
    };
    let listened = control::listen(&driven.settings, &clock, &id, wait, shown).await;
    screen::progress("");
    match listened {
        Ok(job) => {
            let exit = told(&ended, &job)?;
            written(driven, &clock, &ended, &job).await;
            Ok(exit)
        }
        Err(error) => Ok(failed(&error, &driven.file)),
    }
}

/// Says how it ended; the counts are data.
fn told(ended: &Ended, job: &Job) -> io::Result<Exit> {
    let (id, counts) = (&job.id, job.counts());
    screen::data(&format!("job {id}: {}\n", words::all_counts(&counts)))?;
    let mut whys: Vec<(&str, u64)> = job.whys().into_iter().collect();
    whys.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (why, count) in whys.into_iter().take(WHYS) {
        screen::say(&format!(
            "{} left out, not taken or failed again: {why}",
            human::count(count, "letter", "letters")
        ));
    }
    let exit = match ended {
        Ended::Finished if counts.skipped == 0 && counts.failed() == counts.waiting => Exit::Ok,
        _ => Exit::Partly,
    };
    if *ended == Ended::Cancelled && !job.begun.lanes.is_empty() {
        screen::say(&format!(
            "{} lanes that were held for it are open: what arrives of them passes the letters that were not sent",
            job.begun.lanes.len()
        ));
    } else if *ended != Ended::Finished && !job.begun.lanes.is_empty() {
        screen::say(&format!(
            "warning: {} lanes are held for letters that are not all sent; what arrives of them waits until their time is over, and then passes\nhelp: redrive replay resume {id} sends the others first",
            job.begun.lanes.len()
        ));
    }
    match ended {
        Ended::Finished if counts.unheard() + counts.waiting > job.silent() => {
            screen::say(&format!("redrive replay watch {id} tells what becomes of the others"));
        }
        Ended::Finished => {}
        Ended::Cancelled => {
            screen::say(&format!("it was cancelled; {} letters were not sent", left(&counts)));
        }
        Ended::Paused(why) => screen::say(&format!(
            "it pauses: {why}; {} letters are not sent\nhelp: redrive replay resume {id} goes on, redrive replay cancel {id} ends it",
            left(&counts)
        )),
        Ended::Stopped => screen::say(&format!(
            "stopped; {} letters are not sent\nhelp: redrive replay resume {id} goes on from exactly where it was",
            left(&counts)
        )),
        Ended::TakenOver => screen::say(&format!(
            "another process goes on with job {id}\nhelp: redrive replay watch {id} shows how far it is; redrive replay resume {id} takes it back"
        )),
    }
    Ok(exit)
}

fn left(counts: &Counts) -> u64 {
    counts.letters.saturating_sub(counts.sent + counts.skipped)
}

/// Writes down how it ended. What is done stays done if that cannot be written.
async fn written(driven: &Driven<'_>, clock: &Clock, ended: &Ended, job: &Job) {
    let Some(deed) = replay::deeds::ended(clock, &driven.by, ended, job) else { return };
    if let Err(error) = journal::append(&driven.settings, deed).await {
        screen::say(&format!("warning: it is not in the journal: {}", screen::told(&error)));
    }
}
