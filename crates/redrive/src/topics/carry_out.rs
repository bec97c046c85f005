//! Takes the steps of a plan, and makes topics ready for a worker. It decides nothing but when to stop.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_config::Subscription;
use redrive_kafka::{Admin, Error, Refused};
use tracing::warn;

use super::found::{Found, look};
use super::plan::{Change, Note, Plan, Step, plan};
use super::verify::{Mender, Mismatch, verify};
use super::wanted::SEGMENT;

/// How long the brokers may take to learn of a change.
const SPREAD: Duration = Duration::from_secs(10);
/// How often they are asked.
const TURN: Duration = Duration::from_millis(100);

/// Why a worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// The cluster did not answer, or did not do it.
    #[error(transparent)]
    Kafka(#[from] Error),
    /// The topics are not as they must be.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Takes one step. A topic that someone else has made meanwhile is no error; whether it is as it must
/// be shows when it is looked at again. A step that we cannot take is left.
pub async fn carry_out(admin: &Admin, step: &Step) -> Result<(), Error> {
    match &step.change {
        Change::Create { partitions, replication, settings } => {
            let create = |settings| admin.create(&step.topic, *partitions, *replication, settings);
            let mut made = create(settings).await;
            // Some clusters do not let everyone say how large files are. That spares the disk; a record goes without.
            let is_refused = |error: &Error| error.refusal().is_some_and(Refused::is_of_settings);
            if made.as_ref().is_err_and(is_refused) && settings.contains_key(SEGMENT) {
                let mut settings = settings.clone();
                settings.remove(SEGMENT);
                made = create(&settings).await;
            }
            match made {
                Err(error) if error.refusal().is_some_and(Refused::is_there_already) => Ok(()),
                made => made,
            }
        }
        Change::AddPartitions { to, .. } => admin.add_partitions(&step.topic, *to).await,
        Change::Alter { setting, to, .. } => {
            admin.alter(&step.topic, &BTreeMap::from([(setting.clone(), to.clone())])).await
        }
        Change::Cannot { .. } => Ok(()),
    }
}

/// Waits until the brokers show that no step is left that we can take, or until waiting is of no use;
/// what is left then.
pub async fn settle(admin: &Admin, subscriptions: &[Subscription]) -> Result<Plan, Error> {
    let until_done = async {
        let mut turns = tokio::time::interval(TURN);
        loop {
            turns.tick().await;
            let left = plan(subscriptions, &look(admin, subscriptions).await?);
            if left.doable().next().is_none() {
                return Ok(left);
            }
        }
    };
    match tokio::time::timeout(SPREAD, until_done).await {
        Ok(left) => left,
        Err(_) => Ok(plan(subscriptions, &look(admin, subscriptions).await?)),
    }
}

/// Verifies the topics of the subscriptions; those with `auto-create` are mended first. To be called
/// before anything is consumed, and again when a source has gained partitions: its other topics grow
/// before the new partitions are read. A broker may not know of the growth yet; what was verified
/// shows whether it did.
pub async fn ensure(
    admin: &Admin,
    subscriptions: &[Subscription],
    mender: &Mender,
) -> Result<Ready, Unready> {
    let mut mending = Mending::default();
    let mended = tokio::time::timeout(SPREAD, mending.mend(admin, subscriptions)).await;
    let found = match (mended, mending.refused) {
        // Not looked at again: another broker may be behind the one that answered.
        (Ok(found), _) => found?,
        (Err(_), Some(refused)) => return Err(refused.into()),
        (Err(_), None) => look(admin, subscriptions).await?,
    };
    let plan = plan(subscriptions, &found);
    verify(&plan, mender)?;
    Ok(Ready { found, notes: plan.notes })
}

/// Topics that are as they must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// How they are: ids and partitions of the sources too.
    pub found: Found,
    /// What is worth knowing.
    pub notes: Vec<Note>,
}

impl Ready {
    /// Says what is worth knowing.
    pub(crate) fn tell(&self) {
        for note in &self.notes {
            warn!("{note}");
        }
    }
}

/// Topics on their way to what they must be.
#[derive(Default)]
struct Mending {
    /// No step is taken twice: brokers may still show what was before it.
    taken: Vec<Step>,
    /// Another worker may be at it too, so that a refusal counts only if the topics stay as they are.
    refused: Option<Error>,
}

impl Mending {
    /// The topics, once those of subscriptions with `auto-create` need nothing more that we can do.
    async fn mend(&mut self, admin: &Admin, subscriptions: &[Subscription]) -> Result<Found, Error> {
        let automatic: Vec<_> = subscriptions.iter().filter(|one| one.auto_create).cloned().collect();
        let mut turns = tokio::time::interval(TURN);
        loop {
            turns.tick().await;
            let found = look(admin, subscriptions).await?;
            let left = plan(&automatic, &found);
            if left.doable().next().is_none() {
                return Ok(found);
            }
            for step in left.doable().filter(|step| !self.taken.contains(step)).cloned().collect::<Vec<_>>() {
                match carry_out(admin, &step).await {
                    Err(error) if error.refusal().is_some_and(is_final) => return Err(error),
                    outcome => self.refused = outcome.err().or(self.refused.take()),
                }
                self.taken.push(step);
            }
        }
    }
}

/// Whether waiting for others is of no use.
fn is_final(refusal: &Refused) -> bool {
    refusal.is_denied() || refusal.is_out_of_reach()
}
