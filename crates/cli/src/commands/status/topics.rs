//! Topics that are missing or not as they must be, as `redrive topics plan` finds them.

use std::collections::BTreeSet;

use redrive::topics::{self, Change, Found, Step, plan, plan_state};
use redrive_core::Topic;

use super::look::Look;
use crate::exit::Exit;

pub(super) async fn look(look: &mut Look<'_>, names: &BTreeSet<Topic>) -> Result<(), Exit> {
    let Some(config) = look.config else { return Ok(()) };
    let found = found(look, names).await;
    let Some(found) = look.or_unseen("topics", found)? else { return Ok(()) };
    let state = plan_state(&config.subscriptions, &found);
    // Whoever is the first to write there makes it.
    let state = state.filter(|step| !matches!(step.change, Change::Create { .. }));
    for step in plan(&config.subscriptions, &found).steps.iter().chain(&state) {
        let remedy = match &step.change {
            Change::Create { .. } | Change::AddPartitions { .. } | Change::Alter { .. } => {
                look.command("topics apply")
            }
            Change::Cannot { remedy } => remedy.replace("ADDRESS", &look.settings.brokers),
        };
        look.add("topics", &step.topic, wrong(step), remedy);
    }
    Ok(())
}

async fn found(look: &Look<'_>, names: &BTreeSet<Topic>) -> Result<Found, redrive_kafka::Error> {
    let subscriptions = look.config.map(|config| config.subscriptions.as_slice()).unwrap_or_default();
    let mut found = topics::look(look.admin, subscriptions).await?;
    let state = redrive::pauses::topic();
    if names.contains(&state) {
        found.topics.extend(look.admin.describe(&[state]).await?);
    }
    Ok(found)
}

fn wrong(step: &Step) -> String {
    let why = &step.why;
    match &step.change {
        Change::Create { .. } => format!("does not exist: {why}"),
        Change::AddPartitions { from, to } => format!("has {from} partitions and must have {to}: {why}"),
        Change::Alter { setting, from, to } => {
            let from = from.as_deref().unwrap_or("unknown");
            format!("has {setting}={from} and must have {to}: {why}")
        }
        Change::Cannot { .. } => why.clone(),
    }
}
