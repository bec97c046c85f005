//! A plan as a refusal: each mismatch, and what mends them.

use std::fmt;

use super::plan::{Plan, Step};

/// Who mends the topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mender {
    /// The command line, with this configuration file.
    Command {
        /// The file.
        config: String,
    },
    /// A program that uses this library.
    Library,
}

/// Topics that are not as they must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What is wrong, and why.
    pub steps: Vec<Step>,
    /// Who mends it.
    pub mender: Mender,
}

/// Accepts topics that are as they must be.
pub fn verify(plan: &Plan, mender: &Mender) -> Result<(), Mismatch> {
    if plan.is_done() {
        return Ok(());
    }
    Err(Mismatch { steps: plan.steps.clone(), mender: mender.clone() })
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the topics are not as they must be")?;
        for step in &self.steps {
            write!(f, "\n  {step}")?;
        }
        if !self.steps.iter().any(Step::is_doable) {
            return Ok(());
        }
        match &self.mender {
            Mender::Command { config } => {
                write!(
                    f,
                    "\nhelp: redrive topics apply -c {config}, or auto-create = true in the subscription"
                )
            }
            Mender::Library => f.write_str("\nhelp: auto_create(true), or redrive topics apply"),
        }
    }
}

impl std::error::Error for Mismatch {}
