//! `redrive topics apply`: takes the steps one by one and tells of each how it went.

use std::io;

use redrive::topics::{Step, carry_out, settle};
use serde_json::json;

use super::{Output, Planned, Where, show};
use crate::exit::Exit;
use crate::{cluster, human, screen};

/// How a step went.
enum Outcome {
    Done,
    Failed(redrive_kafka::Error),
    /// Not ours to take.
    Left,
}

pub(super) async fn apply(where_: &Where, yes: bool) -> io::Result<Exit> {
    let planned = match where_.planned().await {
        Ok(planned) => planned,
        Err(exit) => return Ok(exit),
    };
    if planned.plan.doable().next().is_some() && !is_agreed(&planned, yes)? {
        return Ok(Exit::Usage);
    }
    let mut outcomes = Vec::new();
    for step in &planned.plan.steps {
        let outcome = take(&planned, step).await;
        let stop = matches!(&outcome, Outcome::Failed(error) if cluster::is_out_of_reach(error));
        tell(where_.output, step, &outcome)?;
        outcomes.push((step, outcome));
        if stop {
            break;
        }
    }
    report(where_, &planned, &outcomes)?;
    let not_done = planned.plan.steps.len() - done(&outcomes);
    if not_done == 0 {
        // So that whoever looks next, at whichever broker, sees what was done.
        if done(&outcomes) > 0
            && let Err(error) = settle(&planned.admin, &planned.subscriptions).await
        {
            return Ok(cluster::failed(&error, &where_.file.name()));
        }
        return Ok(Exit::Ok);
    }
    screen::say(&format!(
        "{} not done; mend the cause and run it again",
        human::count(not_done as u64, "step", "steps")
    ));
    Ok(if done(&outcomes) > 0 { Exit::Partly } else { Exit::Failed })
}

/// Asks where a person is; elsewhere only `--yes` will do.
fn is_agreed(planned: &Planned, yes: bool) -> io::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !screen::has_person() {
        screen::say(
            "error: there is no terminal to ask on\nhelp: --yes applies the plan; redrive topics plan shows it",
        );
        return Ok(false);
    }
    screen::say(show::table(&planned.plan).trim_end());
    let steps = human::count(planned.plan.doable().count() as u64, "step", "steps");
    let agreed = screen::is_wanted(&format!("\napply {steps}?"))?;
    if !agreed {
        screen::say("nothing was changed");
    }
    Ok(agreed)
}

async fn take(planned: &Planned, step: &Step) -> Outcome {
    if !step.is_doable() {
        return Outcome::Left;
    }
    match carry_out(&planned.admin, step).await {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::Failed(error),
    }
}

/// A line as soon as a step is over: data for people, progress where the data is JSON.
fn tell(output: Output, step: &Step, outcome: &Outcome) -> io::Result<()> {
    let line = match outcome {
        Outcome::Done => format!("done    {}", show::line(step)),
        Outcome::Failed(error) => format!("failed  {}\n        {}", show::line(step), screen::told(error)),
        Outcome::Left => format!("left    {step}"),
    };
    match output {
        Output::Table => screen::data(&format!("{line}\n")),
        Output::Json => {
            screen::say(&line);
            Ok(())
        }
    }
}

fn report(where_: &Where, planned: &Planned, outcomes: &[(&Step, Outcome)]) -> io::Result<()> {
    match where_.output {
        Output::Table if planned.plan.is_done() => screen::data("nothing to do\n"),
        Output::Table => Ok(()),
        Output::Json => {
            let one = |(step, outcome): &(&Step, Outcome)| {
                let mut value = show::step(step);
                match outcome {
                    Outcome::Done => value["outcome"] = "done".into(),
                    Outcome::Left => value["outcome"] = "left".into(),
                    Outcome::Failed(error) => {
                        value["outcome"] = "failed".into();
                        value["error"] = screen::told(error).into();
                    }
                }
                value
            };
            let steps: Vec<_> = outcomes.iter().map(one).collect();
            screen::data(&format!("{:#}\n", json!({ "done": done(outcomes), "steps": steps })))
        }
    }
}

fn done(outcomes: &[(&Step, Outcome)]) -> usize {
    outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Done)).count()
}
