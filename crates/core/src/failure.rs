//! What a handler returned instead of success: data for classification, never an error of ours.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::class::Class;
use crate::origin::Origin;

/// More causes than this are not kept: a chain may be a loop.
const LONGEST_CHAIN: usize = 16;

/// Why a record was not handled: a chain of causes from the outside in, and what the handler asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    causes: Vec<Cause>,
    /// How long the handler asked to wait.
    pub retry_after: Option<Duration>,
    /// The record whose setting aside made this one fail.
    pub follows: Option<Origin>,
    /// The class if no rule knows better.
    pub presumed: Option<Class>,
    /// Whether the bytes are not what the handler reads.
    pub undecodable: bool,
    /// Where it happened, if someone took note.
    pub stack: Option<String>,
}

/// One link in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    /// The name of the error's type.
    pub type_name: String,
    /// What it says.
    pub message: String,
    /// A status as HTTP has them.
    pub status: Option<u16>,
    /// Any other code, such as an SQLSTATE.
    pub code: Option<String>,
    /// The class that a wrapper states here; it hides what lies inside.
    pub class: Option<Class>,
}

impl Cause {
    /// A cause of this type with this message.
    #[must_use]
    pub fn new(type_name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { type_name: type_name.into(), message: message.into(), ..Self::default() }
    }
}

impl Failure {
    /// A failure with one cause.
    #[must_use]
    pub fn new(cause: Cause) -> Self {
        Self {
            causes: vec![cause],
            retry_after: None,
            follows: None,
            presumed: None,
            undecodable: false,
            stack: None,
        }
    }

    /// The same failure, of this class if no rule knows better.
    #[must_use]
    pub fn presumably(self, class: Class) -> Self {
        Self { presumed: Some(class), ..self }
    }

    /// The predecessor of the record, consumed at `origin`, was set aside, so this one cannot be handled.
    #[must_use]
    pub fn follows(origin: Origin) -> Self {
        let cause =
            Cause::new("redrive::Follows", format!("{origin}, which this record follows, was set aside"));
        Self { follows: Some(origin), ..Self::new(cause).classed(Class::NotReady) }
    }

    /// The record's bytes are not what the handler reads: no further try will help.
    #[must_use]
    pub fn undecodable(error: &(dyn Error + 'static)) -> Self {
        Self { undecodable: true, ..Self::from_dyn(error).classed(Class::Permanent) }
    }

    /// The failure that any error stands for: itself if it is one, otherwise the chain of its sources.
    #[must_use]
    pub fn from_any<E: Into<Box<dyn Error + Send + Sync>>>(error: E) -> Self {
        let type_name = std::any::type_name::<E>();
        match error.into().downcast::<Carried>() {
            Ok(carried) => carried.0,
            // What was boxed already, a text or an `anyhow::Error`, says more by its look than by its type.
            Err(error) if type_name.starts_with("alloc::") || type_name.starts_with('&') => {
                Self::from_dyn(error.as_ref())
            }
            Err(error) if type_name.starts_with("anyhow::") => Self::from_dyn(error.as_ref()),
            Err(error) => Self::from_chain(error.as_ref(), short_type_name(type_name)),
        }
    }

    /// The same failure, caused by `cause`, which lies inside all causes given before.
    #[must_use]
    pub fn caused_by(mut self, cause: Cause) -> Self {
        if self.causes.len() < LONGEST_CHAIN {
            self.causes.push(cause);
        }
        self
    }

    /// A failure from any error: the chain of its sources, wrappers found wherever they are in it.
    #[must_use]
    pub fn from_error<E: Error + 'static>(error: &E) -> Self {
        Self::from_chain(error, short_type_name(std::any::type_name::<E>()))
    }

    /// As [`Failure::from_error`], where the type of the outermost error is no longer known.
    #[must_use]
    pub fn from_dyn(error: &(dyn Error + 'static)) -> Self {
        Self::from_chain(error, type_name_by_debug(error))
    }

    fn from_chain(error: &(dyn Error + 'static), type_name: String) -> Self {
        let mut failure = Self {
            causes: Vec::new(),
            retry_after: None,
            follows: None,
            presumed: None,
            undecodable: false,
            stack: None,
        };
        let mut type_name = Some(type_name);
        let mut next = Some(error);
        while let Some(error) = next.filter(|_| failure.causes.len() < LONGEST_CHAIN) {
            let type_name = type_name.take().unwrap_or_else(|| type_name_by_debug(error));
            let mut cause = Cause::new(type_name, error.to_string());
            if let Some(wrapper) = error.downcast_ref::<Classed>() {
                cause.type_name = format!("redrive::{:?}", wrapper.class);
                cause.class = Some(wrapper.class);
                // A wrapper hides what lies inside, its wait included.
                if failure.causes.iter().all(|outer| outer.class.is_none()) {
                    failure.retry_after = wrapper.retry_after;
                }
            }
            failure.causes.push(cause);
            next = inside(error);
        }
        failure
    }

    /// The causes, from the outside in; never empty.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Every text of it that somebody else wrote.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let causes = self.causes.iter_mut();
        let texts = causes
            .flat_map(|cause| [&mut cause.type_name, &mut cause.message].into_iter().chain(&mut cause.code));
        texts.chain(&mut self.stack)
    }

    /// The outermost cause.
    #[must_use]
    pub fn outermost(&self) -> &Cause {
        &self.causes[0]
    }

    /// The same failure with its class stated by the handler: no rule is asked.
    #[must_use]
    pub fn classed(mut self, class: Class) -> Self {
        self.causes[0].class = Some(class);
        self
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::from_error(&error)
    }
}

/// A failure on its way through a boxed error.
#[derive(Debug)]
struct Carried(Failure);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.outermost().message)
    }
}

impl Error for Carried {}

impl From<Failure> for Box<dyn Error + Send + Sync> {
    fn from(failure: Failure) -> Self {
        Box::new(Carried(failure))
    }
}

/// An error wrapped to say its class (C3), so that a handler can mask one class as another.
#[derive(Debug)]
pub struct Classed {
    class: Class,
    retry_after: Option<Duration>,
    inner: Box<dyn Error + Send + Sync>,
}

impl Classed {
    /// No further try will help.
    pub fn permanent(inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Class::Permanent, inner)
    }

    /// Try again in place.
    pub fn transient(inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Class::Transient, inner)
    }

    /// The dependency is down: the flow waits.
    pub fn outage(inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Class::Outage, inner)
    }

    /// Only this record cannot be handled yet.
    pub fn not_ready(inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Class::NotReady, inner)
    }

    /// The class as a value.
    pub fn new(class: Class, inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { class, retry_after: None, inner: inner.into() }
    }

    /// Asks to wait this long instead of what the policy says.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl fmt::Display for Classed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.inner)
    }
}

impl Error for Classed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.inner.as_ref())
    }
}

/// The next error inwards. An `io::Error` names the source of what it carries and not the thing
/// itself, which may be a wrapper.
fn inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(carried) => Some(carried),
        None => error.source(),
    }
}

/// The path without type parameters, which would make one error many.
fn short_type_name(name: &str) -> String {
    name.split('<').next().unwrap_or(name).to_owned()
}

/// A source is known only as `dyn Error`; what it prints for programmers begins with its type's name.
fn type_name_by_debug(error: &dyn Error) -> String {
    let debug = format!("{error:?}");
    // Some errors show what they say and not what they are.
    let said = error.to_string();
    if debug.starts_with(&said) && said.contains(char::is_whitespace) {
        return "Error".to_owned();
    }
    let name: String = debug.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
    if name.is_empty() { "Error".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot load the order")]
    struct Load(#[source] Timeout);

    #[derive(Debug, thiserror::Error)]
    #[error("timed out after 900 ms")]
    struct Timeout;

    #[test]
    fn an_error_becomes_the_chain_of_its_sources() {
        let failure = Failure::from_error(&Load(Timeout));
        let chain: Vec<_> =
            failure.causes().iter().map(|c| (c.type_name.as_str(), c.message.as_str())).collect();
        assert_eq!(chain[0].1, "cannot load the order");
        assert!(chain[0].0.ends_with("::Load"), "{}", chain[0].0);
        assert_eq!(chain[1], ("Timeout", "timed out after 900 ms"));
    }

    #[test]
    fn a_wrapper_states_class_and_wait_wherever_it_is_in_the_chain() {
        let wrapped = Classed::not_ready(Load(Timeout)).retry_after(Duration::from_secs(7));
        let failure = Failure::from_error(&std::io::Error::other(wrapped));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        let classes: Vec<_> = failure.causes().iter().map(|cause| cause.class).collect();
        assert!(classes.contains(&Some(Class::NotReady)), "{failure:?}");
    }

    #[test]
    fn a_wrapper_hides_the_wait_of_the_one_inside() {
        let inner = || Classed::permanent("inner").retry_after(Duration::from_secs(9));
        assert_eq!(Failure::from_error(&Classed::transient(inner())).retry_after, None);
        let outer = Classed::transient(inner()).retry_after(Duration::from_secs(1));
        assert_eq!(Failure::from_error(&outer).retry_after, Some(Duration::from_secs(1)));
    }

    #[test]
    fn type_parameters_do_not_make_one_error_many() {
        #[derive(Debug, thiserror::Error)]
        #[error("generic")]
        struct Generic<T: fmt::Debug>(T);
        let (one, two) = (Failure::from_error(&Generic(1_u8)), Failure::from_error(&Generic("text")));
        assert_eq!(one.outermost().type_name, two.outermost().type_name);
    }

    #[test]
    fn any_error_becomes_a_failure_and_a_failure_stays_itself() {
        let own = Failure::follows("orders/0/7".parse().unwrap());
        assert_eq!(Failure::from_any(own.clone()), own);
        assert_eq!(Failure::from_any("no stock"), Failure::new(Cause::new("Error", "no stock")));
        let named = Failure::from_any(Load(Timeout));
        assert!(named.outermost().type_name.ends_with("::Load"), "{named:?}");
        assert_eq!(named, Failure::from(Load(Timeout)));
        let boxed: Box<dyn Error + Send + Sync> = Box::new(Load(Timeout));
        assert_eq!(Failure::from_any(boxed).outermost().type_name, "Load");
    }

    #[test]
    fn a_chain_that_never_ends_is_cut() {
        #[derive(Debug, thiserror::Error)]
        #[error("again")]
        struct Loop;
        let mut failure = Failure::from_error(&Loop);
        for _ in 0..100 {
            failure = failure.caused_by(Cause::new("Loop", "again"));
        }
        assert_eq!(failure.causes().len(), LONGEST_CHAIN);
    }
}
