//! Every table and key of the file.

use std::net::SocketAddr;
use std::time::Duration;

use redrive_core::classify::{Pattern, Statuses};
use redrive_core::lanes::Followers;
use redrive_core::mask::Pointer;
use redrive_core::route::Exhausted;
use redrive_core::settings::{
    BatchFormat, Blocking, Delay, Delivery, Endpoint, HttpVersion, LetterPartition, MaxLoss, OrderBy,
    Payload, Start, Tombstones,
};
use redrive_core::{Class, Policy, Topic};

use crate::meant::{LogFormat, LogLevel};

use super::Need::{Default, Optional, Required};
use super::{At, ByClass, Count, Flag, Guarded, Named, Properties, Ratio, Secret, Size, Text};

table! {
    /// One TOML file configures everything.
    File {
        /// Where Kafka is.
        "kafka" kafka: Kafka, Required;
        /// The name of the service, as dead letters tell it.
        "service" service: Text, Optional;
        /// Where `redrive run` tells of its health, its metrics and its subscriptions.
        "server" server: Server, Optional;
        /// What `redrive run` writes to stderr.
        "log" log: Log, Optional;
        /// Where `redrive run` sends spans, one for each attempt.
        "traces" traces: Traces, Optional;
        /// How `redrive dlq` finds and indexes dead letters.
        "letters" letters: Letters, Optional;
        /// What holds for every subscription that does not say otherwise.
        "defaults" defaults: Defaults, Optional;
        /// A topic, the group that consumes it, and what happens to its records. Repeat it for each.
        "subscription" subscription: Vec<At<Subscription>>, Optional;
    }
}

table! {
    /// The cluster to work with.
    Kafka {
        /// Addresses to begin with, separated by commas, or `embedded` for a broker inside the process.
        "brokers" brokers: Text, Required;
        /// Settings of librdkafka, passed on as they are. Their values are never printed.
        "properties" properties: Properties, Optional;
        /// Where the embedded broker of `redrive run` listens, and where the other commands find it.
        "listen" listen: SocketAddr, Default("127.0.0.1:9092");
        /// The folder in which the embedded broker keeps everything; without it all is in memory and gone at the end.
        "data" data: Text, Optional;
    }
}

table! {
    /// Where `redrive run` tells of its health (`/healthz`, `/readyz`), its metrics (`/metrics`) and its
    /// subscriptions (`/api/v1/subscriptions`).
    Server {
        /// The address; port 0 takes a free one. One that others can reach is refused without a token.
        "listen" listen: SocketAddr, Default("127.0.0.1:8790");
        /// Who has it may ask: `Authorization: Bearer TOKEN`. `/healthz` and `/readyz` need none, and tell
        /// nobody else more than whether.
        "token" token: Secret, Optional;
    }
}

table! {
    /// What `redrive run` writes to stderr: an event for each decision.
    Log {
        /// For people or for programs.
        "format" format: LogFormat, Default("text");
        /// The least that is written.
        "level" level: LogLevel, Default("info");
    }
}

table! {
    /// Where `redrive run` sends spans, one for each attempt; whoever is called gets the trace context of its span.
    /// Without this there are none, and the record's context passes as it is. What comes of it never affects a record.
    Traces {
        /// The address of a collector that takes OTLP over HTTP (protobuf); its path is `/v1/traces` unless it names one.
        "endpoint" endpoint: Endpoint, Required;
        /// More headers for each request. Their values are never printed.
        "headers" headers: Named, Optional;
        /// A file with the certificates (PEM) of whom to trust, instead of those that the system trusts.
        "ca" ca: Text, Optional;
        /// The share of the records without a trace that get one. Where there is one, its own flag counts.
        "sample" sample: Ratio, Default("1");
        /// How long a request may take.
        "timeout" timeout: Duration, Default("10s");
        /// How many spans may wait to be sent; more than these are dropped and counted.
        "queue" queue: Count, Default("10000");
    }
}

table! {
    /// How `redrive dlq` finds and indexes dead letters. The letter topics of the subscriptions are always read.
    Letters {
        /// The folder of the index, which may be deleted at any time.
        "state" state: Text, Default("~/.local/state/redrive");
        /// Expressions that the whole names of other letter topics match.
        "topics" topics: Vec<At<Pattern>>, Default(".*\\.dlq");
        /// Addresses of logs and traces, by a name, for `redrive dlq show`. `{topic}`, `{partition}`, `{offset}`, `{group}`,
        /// `{key}`, `{service}`, `{instance}`, `{handler}`, `{time}` (epoch milliseconds), `{error}` and `{header:NAME}` stand for
        /// what the letter says.
        "links" links: Named, Optional;
        /// A letter that was sent back so often is left out of replays.
        "max-replays" max_replays: Count, Default("5");
    }
}

table! {
    /// What holds for every subscription that does not say otherwise.
    Defaults {
        /// The class of whatever no rule matches.
        "class" class: Class, Default("transient");
        /// When a failure of each class is tried again.
        "retry" retry: ByClass<Policy>, Optional;
        /// What follows when the tries of a class are used up.
        "exhausted" exhausted: ByClass<Exhausted>, Optional;
        /// Rules that name the class of a failure, asked after those of the subscription.
        "classify" classify: Vec<At<Classify>>, Optional;
        /// Who is told of each record that is set aside or dead-lettered.
        "notify" notify: Notify, Optional;
        /// What must not be repeated in the texts of failures, of every subscription.
        "mask" mask: Mask, Optional;
    }
}

table! {
    /// A rule: when everything it names is true of a cause, the failure has its class. The chain of causes is
    /// walked from the outside in; for each cause the rules of the subscription come first, then the defaults.
    Classify {
        /// The class.
        "class" class: Class, Required;
        /// The name of the error's type, in full, or its end after a star: `*TimeoutException`.
        "type" type_name: Text, Optional;
        /// A part of the message.
        "message" message: Text, Optional;
        /// A regular expression that matches somewhere in the message.
        "pattern" pattern: Pattern, Optional;
        /// A status or a range of them.
        "status" status: Statuses, Optional;
        /// Any other code, such as an SQLSTATE.
        "code" code: Text, Optional;
        /// The topic of the record.
        "topic" topic: Topic, Optional;
        /// A header that the record has: `name`, or `name=value`.
        "header" header: Text, Optional;
    }
}

table! {
    /// A topic, the group that consumes it, and what happens to its records.
    Subscription {
        /// The topic to consume.
        "topic" topic: Topic, Required;
        /// The consumer group.
        "group" group: Text, Required;
        /// What commands may call it, beside `TOPIC/GROUP`.
        "name" name: Text, Optional;
        /// What handles the records; absent where the program brings its own handler.
        "handler" handler: Handler, Optional;
        /// The class of whatever no rule matches.
        "class" class: Class, Default("that of the defaults");
        /// When a failure of each class is tried again.
        "retry" retry: ByClass<Policy>, Default("that of the defaults");
        /// What follows when the tries of a class are used up.
        "exhausted" exhausted: ByClass<Exhausted>, Default("that of the defaults");
        /// Rules that name the class of a failure.
        "classify" classify: Vec<At<Classify>>, Optional;
        /// What the records of a lane share: they are handled in order, and wait for each other.
        "order-by" order_by: OrderBy, Default("key");
        /// What becomes of the records behind one that is dead-lettered.
        "followers" followers: Followers, Default("pass");
        /// How a record waits that is set aside.
        "delay" delay: Delay, Default("shelf");
        /// What is promised about repeats.
        "delivery" delivery: Delivery, Default("at-least-once");
        /// Where a group begins that has never run.
        "start" start: Start, Default("earliest");
        /// When so many distinct keys fail within this time, the failure is taken for an outage.
        "surge-guard" surge_guard: Guarded, Default("50% of 20 keys in 30s");
        /// What an outage stops.
        "outage-pauses" outage_pauses: Blocking, Default("subscription");
        /// How many records may be dropped before it is an alarm.
        "max-loss" max_loss: MaxLoss, Optional;
        /// Make and mend topics; otherwise they are verified, and a mismatch is refused with the command that mends it.
        "auto-create" auto_create: Flag, Default("false");
        /// Pass over records that are letters of this group already, when the topic is read anew. Needs
        /// `followers = "pass"`.
        "skip-damaged" skip_damaged: Flag, Default("false");
        /// How many records are handled at once.
        "concurrency" concurrency: Count, Default("64");
        /// How many retries are handled at once, beside the first tries.
        "retry-concurrency" retry_concurrency: Count, Default("that of `concurrency`");
        /// How long the handler may take for a first try.
        "timeout" timeout: Duration, Default("30s");
        /// How long it may take for a retry.
        "retry-timeout" retry_timeout: Duration, Default("that of `timeout`");
        /// How long the broker may take to confirm a dead letter.
        "publish-timeout" publish_timeout: Duration, Default("10s");
        /// How long what runs may take to end when a partition is given up or the program stops.
        "drain-timeout" drain_timeout: Duration, Default("10s");
        /// How many records may be in memory, over all partitions.
        "max-records" max_records: Count, Default("100000");
        /// How many bytes of them may be in memory.
        "max-bytes" max_bytes: Size, Default("268435456");
        /// The partition of a dead letter: that of its record, or by its key.
        "letter-partition" letter_partition: LetterPartition, Default("same");
        /// What of a waiting record is written to the shelf: all of it, or where it stands in its source, from
        /// where it is read again.
        "payload" payload: Payload, Default("whole");
        /// How much may wait, and how much of that is kept in memory.
        "shelf" shelf: Shelf, Optional;
        /// Who is told of each record that is set aside or dead-lettered, before and after.
        "notify" notify: Notify, Default("that of the defaults");
        /// What must not be repeated in the texts of failures, beside that of the defaults.
        "mask" mask: Mask, Optional;
        /// Names of topics that differ from the derived ones.
        "topics" topics: Topics, Optional;
    }
}

table! {
    /// What must not be repeated in the texts of failures: messages, types, codes and stacks. Three stars stand
    /// for it in letters, on the shelf, in logs and for whoever is notified. Rules of classification see the stars.
    Mask {
        /// Whatever stands at these places of a value that is JSON.
        "json" json: Vec<At<Pointer>>, Optional;
        /// Whatever these headers of the record hold.
        "headers" headers: Vec<At<Text>>, Optional;
        /// Whatever these expressions match.
        "patterns" patterns: Vec<At<Pattern>>, Optional;
    }
}

table! {
    /// Who is told of each record that is set aside or dead-lettered. What comes of that never affects the record.
    Notify {
        /// The address that a CloudEvent is posted to.
        "url" url: Endpoint, Required;
        /// A file with the certificates (PEM) of whom to trust, instead of those that the system trusts.
        "ca" ca: Text, Optional;
        /// A token, sent as `Authorization: Bearer`.
        "bearer" bearer: Secret, Optional;
        /// What requests are signed with.
        "signature-secret" signature_secret: Secret, Optional;
        /// How long one event may take.
        "timeout" timeout: Duration, Default("5s");
        /// How many events may wait to be posted; more than these are dropped, counted and told in the log.
        "queue" queue: Count, Default("1000");
    }
}

table! {
    /// How much may wait on the shelf, and how much of that is kept in memory.
    Shelf {
        /// How many bytes of waiting records are kept in memory; the others are read back when they are due.
        "cache" cache: Size, Default("67108864");
        /// How many records of one partition may wait; then nothing new of it starts, and it says so.
        "max-records" max_records: Count, Default("5000000");
        /// How many bytes of one partition may wait.
        "max-bytes" max_bytes: Size, Default("8589934592");
    }
}

table! {
    /// What handles the records.
    Handler {
        /// An HTTP endpoint that records are pushed to.
        "http" http: Http, Optional;
        /// A program that runs all the time and gets records as lines of JSON.
        "command" command: Command, Optional;
    }
}

table! {
    /// A program that runs all the time and gets records as lines of JSON. docs/http.md says what it answers.
    Command {
        /// The program and its arguments.
        "argv" argv: Vec<At<Text>>, Required;
        /// More environment variables for it. Their values are never printed.
        "env" env: Named, Optional;
        /// The folder that it runs in, if not the current one.
        "directory" directory: Text, Optional;
        /// How long it may take to end when it is asked to, before it is ended.
        "stop-timeout" stop_timeout: Duration, Default("5s");
    }
}

table! {
    /// An HTTP endpoint. docs/http.md says what it gets and what it may answer.
    Http {
        /// Its address; `http+unix://` names a Unix socket, then the path of the request behind a colon.
        "url" url: Endpoint, Required;
        /// Which HTTP is spoken: over TLS what both can, otherwise 1.1, unless it is said here.
        "version" version: HttpVersion, Default("auto");
        /// A file with the certificates (PEM) of whom to trust, instead of those that the system trusts.
        "ca" ca: Text, Optional;
        /// A file with the certificate (PEM) to show to the endpoint.
        "certificate" certificate: Text, Optional;
        /// A file with the key (PEM) of that certificate.
        "private-key" private_key: Text, Optional;
        /// A token, sent as `Authorization: Bearer`.
        "bearer" bearer: Secret, Optional;
        /// `user:password`, sent as `Authorization: Basic`.
        "basic" basic: Secret, Optional;
        /// What requests are signed with, so that the endpoint knows who calls.
        "signature-secret" signature_secret: Secret, Optional;
        /// More headers for each request. Their values are never printed.
        "headers" headers: Named, Optional;
        /// What becomes of records whose value is null.
        "tombstones" tombstones: Tombstones, Default("deliver");
        /// How many bytes of an answer are read; its status counts whatever its length.
        "max-answer" max_answer: Size, Default("65536");
        /// How many bytes a record's value may have; a larger one is a permanent failure.
        "max-body" max_body: Size, Default("104857600");
        /// Several records in one request.
        "batch" batch: Batch, Optional;
    }
}

table! {
    /// Several records in one request.
    Batch {
        /// How many at most.
        "records" records: Count, Required;
        /// How they are written.
        "format" format: BatchFormat, Default("ndjson");
    }
}

table! {
    /// Names of topics that differ from the derived ones.
    Topics {
        /// Where records wait.
        "shelf" shelf: Topic, Default("TOPIC.GROUP.shelf");
        /// Where dead letters go.
        "letters" letters: Topic, Default("TOPIC.GROUP.dlq");
    }
}
