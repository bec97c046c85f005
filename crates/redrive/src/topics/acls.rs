//! What a worker must be allowed to do, and no more.

use redrive_config::Subscription;
use redrive_core::settings::{Delay, Delivery};

use super::wanted::{Role, Use, uses};
use crate::send;

/// What a principal is allowed to do to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    /// The kind of resource.
    pub resource: Resource,
    /// Its name, or how it begins.
    pub name: String,
    /// Which of both.
    pub pattern: Pattern,
    /// What is allowed.
    pub operations: Vec<Operation>,
    /// What it is needed for.
    pub why: String,
}

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A topic.
    Topic,
    /// A consumer group.
    Group,
    /// The id of a transactional producer.
    TransactionalId,
}

/// How names are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// They are the same.
    Literal,
    /// It begins so.
    Prefixed,
}

/// What can be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they are Kafka's own words")]
pub enum Operation {
    Read,
    Write,
    Delete,
    Describe,
    DescribeConfigs,
    Create,
    Alter,
    AlterConfigs,
}

macro_rules! kafkas_words {
    ($($type:ident: $($value:ident = $word:literal),+;)*) => {$(
        impl $type {
            /// Kafka's word for it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }
        }
    )*};
}

kafkas_words! {
    Resource: Topic = "topic", Group = "group", TransactionalId = "transactional-id";
    Pattern: Literal = "literal", Prefixed = "prefixed";
    Operation: Read = "Read", Write = "Write", Delete = "Delete", Describe = "Describe",
        DescribeConfigs = "DescribeConfigs", Create = "Create", Alter = "Alter", AlterConfigs = "AlterConfigs";
}

/// How the transactional ids of a subscription begin.
#[must_use]
pub fn transactional_prefix(subscription: &Subscription) -> String {
    format!("{}.{}.", subscription.topic, subscription.group)
}

/// The ACLs that a worker needs for a subscription.
#[must_use]
pub fn acls(subscription: &Subscription) -> Vec<Acl> {
    let literal = |resource, name: &str, operations, why: &str| Acl {
        resource,
        name: name.to_owned(),
        pattern: Pattern::Literal,
        operations,
        why: why.to_owned(),
    };
    let source = literal(Resource::Topic, subscription.topic.as_str(), of_source(subscription), "the source");
    let group =
        literal(Resource::Group, &subscription.group, vec![Operation::Read], "joined, and committed to");
    let topics = uses(subscription).into_iter().map(|used| {
        literal(Resource::Topic, used.topic.as_str(), of_used(&used, subscription), what_for(used.role))
    });
    let transactions = match subscription.delivery {
        Delivery::AtLeastOnce => None,
        Delivery::ExactlyOnce => Some(Acl {
            resource: Resource::TransactionalId,
            name: transactional_prefix(subscription),
            pattern: Pattern::Prefixed,
            operations: vec![Operation::Write, Operation::Describe],
            why: "exactly-once delivery".to_owned(),
        }),
    };
    [source, group].into_iter().chain(topics).chain(transactions).collect()
}

/// What `redrive run` needs beside its subscriptions: to know what is paused, and to report what became of letters
/// that were sent back.
#[must_use]
pub fn process_acls() -> Vec<Acl> {
    vec![Acl {
        resource: Resource::Topic,
        name: crate::pauses::TOPIC.to_owned(),
        pattern: Pattern::Literal,
        operations: vec![Operation::Read, Operation::Write, Operation::Describe],
        why: "what is paused on every instance, and what became of letters that were sent back (Create, too, for \
              whoever is the first to write there)"
            .to_owned(),
    }]
}

fn of_source(subscription: &Subscription) -> Vec<Operation> {
    let mut operations = vec![Operation::Read, Operation::Describe, Operation::DescribeConfigs];
    match subscription.delay {
        // Records go back to where they came from.
        Delay::Return => operations.push(Operation::Write),
        Delay::Shelf | Delay::Ladder | Delay::Service | Delay::Postgres => {}
    }
    // What is delivered is deleted: without it the topic only grows.
    if subscription.topic.as_str() == send::TOPIC && subscription.group == send::GROUP {
        operations.push(Operation::Delete);
    }
    operations.sort();
    operations
}

fn of_used(used: &Use, subscription: &Subscription) -> Vec<Operation> {
    let mut operations = match used.role {
        Role::Letters => vec![Operation::Write],
        // Delete is for what is done with: without it the shelf only grows.
        Role::Shelf => vec![Operation::Read, Operation::Write, Operation::Delete],
        Role::Rung(_) | Role::Retry | Role::Return => vec![Operation::Read, Operation::Write],
        Role::Bucket(_) => vec![Operation::Write],
    };
    operations.extend([Operation::Describe, Operation::DescribeConfigs]);
    if subscription.auto_create {
        operations.extend([Operation::Create, Operation::Alter, Operation::AlterConfigs]);
    }
    operations
}

fn what_for(role: Role) -> &'static str {
    match role {
        Role::Letters => "dead letters",
        Role::Shelf => "records that wait",
        Role::Rung(_) => "records that wait for one delay",
        Role::Retry => "records that wait to be sent back",
        Role::Return => "records that come back",
        Role::Bucket(_) => "records handed to the delay service",
    }
}
