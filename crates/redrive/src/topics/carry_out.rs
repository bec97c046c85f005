//! Takes the steps of a plan, and makes topics ready for a worker. It decides nothing but when to stop.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_config::Subscription;
use redrive_kafka::{Admin, Error, Refusal};

use super::found::look;
use super::plan::{Change, Plan, Step, plan};
use super::verify::{Mender, Mismatch, verify};

/// How long the brokers may take to learn of a change.
const SPREAD: Duration = Duration::from_secs(10);

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
            match admin.create(&step.topic, *partitions, *replication, settings).await {
                Err(error) if error.refusal().is_some_and(Refusal::is_there_already) => Ok(()),
                result => result,
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
        let mut turns = tokio::time::interval(Duration::from_millis(100));
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
/// before the new partitions are read.
pub async fn ensure(admin: &Admin, subscriptions: &[Subscription], mender: &Mender) -> Result<Plan, Unready> {
    let found = look(admin, subscriptions).await?;
    let automatic: Vec<_> = subscriptions.iter().filter(|one| one.auto_create).cloned().collect();
    let mut refused = None;
    let mend = plan(&automatic, &found);
    for step in mend.doable() {
        // Another worker may be at it: what counts is how the topics are in the end.
        refused = carry_out(admin, step).await.err().or(refused);
    }
    if mend.is_done() {
        let plan = plan(subscriptions, &found);
        return Ok(verify(&plan, mender).map(|()| plan)?);
    }
    let left = settle(admin, &automatic).await?;
    match refused {
        Some(refused) if left.doable().next().is_some() => return Err(refused.into()),
        Some(_) | None => {}
    }
    let plan = plan(subscriptions, &look(admin, subscriptions).await?);
    Ok(verify(&plan, mender).map(|()| plan)?)
}
