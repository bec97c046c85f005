//! From a failure to its class.
//!
//! For each cause from the outside in: what a wrapper states there, then the subscription's rules,
//! then the global ones; the first match wins. A resolver written by the user is asked before all
//! of it, a default class answers when nothing matched.

mod condition;
mod rule;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use condition::{Condition, Pattern, Statuses};
pub use rule::{BadRule, Rule};

use crate::class::Class;
use crate::failure::{Cause, Failure};
use crate::headers::Headers;
use crate::topic::Topic;

/// What classification may look at besides the failure.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The topic the record came from.
    pub topic: &'a Topic,
    /// Its headers.
    pub headers: &'a Headers,
}

/// The user's own say: a class, or `None` to leave it to the rules.
pub type Resolver = dyn Fn(Subject<'_>, &Failure) -> Option<Class> + Send + Sync;

/// Everything that names classes for one subscription.
#[derive(Clone)]
pub struct Classifier {
    /// The subscription's own rules.
    pub own: Vec<Rule>,
    /// The rules of all subscriptions.
    pub global: Arc<[Rule]>,
    /// The class of whatever no rule matches.
    pub default: Class,
    /// The user's code, if any.
    pub resolver: Option<Arc<Resolver>>,
}

/// Why a failure has its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// The user's resolver said so.
    Resolver,
    /// The handler said so, by a wrapper or a stated class.
    Stated,
    /// This rule of the subscription matched.
    Own(usize),
    /// This global rule matched.
    Global(usize),
    /// Nothing matched.
    Default,
}

impl Classifier {
    /// Only a default class.
    #[must_use]
    pub fn always(default: Class) -> Self {
        Self { own: Vec::new(), global: Arc::new([]), default, resolver: None }
    }

    /// The class of a failure, and why.
    #[must_use]
    pub fn classify(&self, failure: &Failure, subject: Subject<'_>) -> (Class, Because) {
        if let Some(class) = self.resolver.as_ref().and_then(|resolver| resolver(subject, failure)) {
            return (class, Because::Resolver);
        }
        let known = failure.causes().iter().find_map(|cause| self.known(cause, subject));
        let default = failure.presumed.unwrap_or(self.default);
        known.unwrap_or((default, Because::Default))
    }

    fn known(&self, cause: &Cause, subject: Subject<'_>) -> Option<(Class, Because)> {
        if let Some(class) = cause.class {
            return Some((class, Because::Stated));
        }
        let first = |rules: &[Rule]| {
            let found = rules.iter().position(|rule| rule.matches(cause, subject))?;
            Some((rules[found].class(), found))
        };
        let own = first(&self.own).map(|(class, index)| (class, Because::Own(index)));
        own.or_else(|| first(&self.global).map(|(class, index)| (class, Because::Global(index))))
    }
}

impl fmt::Debug for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resolver = self.resolver.as_ref().map(|_| "user code");
        f.debug_struct("Classifier")
            .field("own", &self.own)
            .field("global", &self.global)
            .field("default", &self.default)
            .field("resolver", &resolver)
            .finish()
    }
}
