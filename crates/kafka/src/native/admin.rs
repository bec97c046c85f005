//! Admin calls that rdkafka lacks (topic ids, altering some settings and no others), or whose answers
//! it shortens to a code where the broker gives its reason. Each blocks until the broker has answered
//! or the time is up: they belong on a thread that may wait.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::NonNull;
use std::slice;
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::client::{Client, ClientContext};
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};

use crate::refusal::Refused;
use crate::topic_id::TopicId;

/// What the cluster's metadata say of a topic.
pub(crate) struct Layout {
    pub(crate) id: Option<TopicId>,
    pub(crate) partitions: i32,
    pub(crate) replication: i16,
}

/// A topic, and what is known of it.
pub(crate) type Described = (String, Result<Layout, Refused>);

/// What librdkafka wants freed, by the function that belongs to it.
struct Owned<T> {
    native: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    fn new(native: *mut T, free: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        Some(Self { native: NonNull::new(native)?, free })
    }

    fn ptr(&self) -> *mut T {
        self.native.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: nothing else frees it, and its maker named this function for it.
        unsafe { (self.free)(self.ptr()) }
    }
}

type Queue = rd::rd_kafka_queue_t;
type Event = rd::rd_kafka_event_t;
type Options = rd::rd_kafka_AdminOptions_t;

/// Describes topics; one that does not exist is refused and not made by asking.
pub(crate) fn describe<C: ClientContext>(
    client: &Client<C>,
    names: &[&str],
    timeout: Duration,
) -> Result<Vec<Described>, Refused> {
    let names: Vec<_> = names.iter().map(|name| text(name)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: the names live until the end of this function; librdkafka copies them.
    let topics =
        unsafe { rd::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len()) };
    let topics = Owned::new(topics, rd::rd_kafka_TopicCollection_destroy).ok_or_else(out_of_memory)?;
    let operation = rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    let answer = ask(client, operation, timeout, |options, queue| {
        // SAFETY: client, topics, options and queue are alive; the topics are copied into the request.
        unsafe { rd::rd_kafka_DescribeTopics(client.native_ptr(), topics.ptr(), options, queue) }
    })?;
    // SAFETY: the event is an answer to DescribeTopics, and what is read of it is copied before it is freed.
    unsafe {
        let result = rd::rd_kafka_event_DescribeTopics_result(answer.ptr());
        let topics = list(result, rd::rd_kafka_DescribeTopics_result_topics);
        Ok(topics.iter().map(|topic| described(*topic)).collect())
    }
}

/// # Safety
/// The description is one of an event that is still alive.
unsafe fn described(topic: *const rd::rd_kafka_TopicDescription_t) -> Described {
    // SAFETY: as the caller promises; every pointer asked for belongs to the description.
    unsafe {
        let name = owned(rd::rd_kafka_TopicDescription_name(topic));
        let error = rd::rd_kafka_TopicDescription_error(topic);
        let code = rd::rd_kafka_error_code(error);
        if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return (name, Err(refusal(code, rd::rd_kafka_error_string(error))));
        }
        let partitions = list(topic, rd::rd_kafka_TopicDescription_partitions);
        let replicas =
            partitions.iter().map(|one| list(*one, rd::rd_kafka_TopicPartitionInfo_replicas).len());
        let layout = Layout {
            id: id(rd::rd_kafka_TopicDescription_topic_id(topic)),
            partitions: i32::try_from(partitions.len()).unwrap_or(i32::MAX),
            replication: i16::try_from(replicas.min().unwrap_or(0)).unwrap_or(i16::MAX),
        };
        (name, Ok(layout))
    }
}

/// # Safety
/// The id is none, or one that is still alive.
unsafe fn id(uuid: *const rd::rd_kafka_Uuid_t) -> Option<TopicId> {
    if uuid.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let (most, least) = unsafe {
        (rd::rd_kafka_Uuid_most_significant_bits(uuid), rd::rd_kafka_Uuid_least_significant_bits(uuid))
    };
    TopicId::from_bits(most, least)
}

/// Makes a topic.
pub(crate) fn create<C: ClientContext>(
    client: &Client<C>,
    name: &str,
    (partitions, replication): (i32, i16),
    settings: &BTreeMap<String, String>,
    timeout: Duration,
) -> Result<(), Refused> {
    let name = text(name)?;
    let mut why = Reason::default();
    // SAFETY: the name is copied; the buffer is as long as is said.
    let topic = unsafe {
        rd::rd_kafka_NewTopic_new(name.as_ptr(), partitions, replication.into(), why.ptr(), why.size())
    };
    let topic = Owned::new(topic, rd::rd_kafka_NewTopic_destroy).ok_or_else(|| why.refusal())?;
    for (setting, value) in settings {
        let (setting, value) = (text(setting)?, text(value)?);
        // SAFETY: the topic is alive, and both texts are copied.
        let code = unsafe { rd::rd_kafka_NewTopic_set_config(topic.ptr(), setting.as_ptr(), value.as_ptr()) };
        accepted(code)?;
    }
    let operation = rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATETOPICS;
    let answer = ask(client, operation, timeout, |options, queue| {
        // SAFETY: an array of one topic that is alive; it is copied into the request.
        unsafe { rd::rd_kafka_CreateTopics(client.native_ptr(), &mut topic.ptr(), 1, options, queue) }
    })?;
    // SAFETY: the event is an answer to CreateTopics and lives until the end of this function.
    unsafe {
        let result = rd::rd_kafka_event_CreateTopics_result(answer.ptr());
        whole(list(result, rd::rd_kafka_CreateTopics_result_topics))
    }
}

/// Gives a topic so many partitions in all.
pub(crate) fn grow<C: ClientContext>(
    client: &Client<C>,
    name: &str,
    partitions: i32,
    timeout: Duration,
) -> Result<(), Refused> {
    let name = text(name)?;
    let partitions =
        usize::try_from(partitions).map_err(|_| Refused::of("a negative number of partitions"))?;
    let mut why = Reason::default();
    // SAFETY: the name is copied; the buffer is as long as is said.
    let grown = unsafe { rd::rd_kafka_NewPartitions_new(name.as_ptr(), partitions, why.ptr(), why.size()) };
    let grown = Owned::new(grown, rd::rd_kafka_NewPartitions_destroy).ok_or_else(|| why.refusal())?;
    let operation = rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATEPARTITIONS;
    let answer = ask(client, operation, timeout, |options, queue| {
        // SAFETY: an array of one that is alive; it is copied into the request.
        unsafe { rd::rd_kafka_CreatePartitions(client.native_ptr(), &mut grown.ptr(), 1, options, queue) }
    })?;
    // SAFETY: the event is an answer to CreatePartitions and lives until the end of this function.
    unsafe {
        let result = rd::rd_kafka_event_CreatePartitions_result(answer.ptr());
        whole(list(result, rd::rd_kafka_CreatePartitions_result_topics))
    }
}

/// Sets these settings of a topic and leaves all others as they are.
pub(crate) fn alter<C: ClientContext>(
    client: &Client<C>,
    name: &str,
    settings: &BTreeMap<String, String>,
    timeout: Duration,
) -> Result<(), Refused> {
    let name = text(name)?;
    let topic = rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC;
    // SAFETY: the name is copied.
    let resource = unsafe { rd::rd_kafka_ConfigResource_new(topic, name.as_ptr()) };
    let resource = Owned::new(resource, rd::rd_kafka_ConfigResource_destroy).ok_or_else(out_of_memory)?;
    let set = rd::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET;
    for (setting, value) in settings {
        let (setting, value) = (text(setting)?, text(value)?);
        // SAFETY: the resource is alive, and both texts are copied.
        let error = unsafe {
            rd::rd_kafka_ConfigResource_add_incremental_config(
                resource.ptr(),
                setting.as_ptr(),
                set,
                value.as_ptr(),
            )
        };
        if let Some(error) = Owned::new(error, rd::rd_kafka_error_destroy) {
            // SAFETY: the error is alive until the end of this block.
            let (code, why) =
                unsafe { (rd::rd_kafka_error_code(error.ptr()), rd::rd_kafka_error_string(error.ptr())) };
            // SAFETY: the text belongs to the error.
            return Err(unsafe { refusal(code, why) });
        }
    }
    let operation = rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS;
    let answer = ask(client, operation, timeout, |options, queue| {
        let client = client.native_ptr();
        // SAFETY: an array of one resource that is alive; it is copied into the request.
        unsafe { rd::rd_kafka_IncrementalAlterConfigs(client, &mut resource.ptr(), 1, options, queue) }
    })?;
    // SAFETY: the event is an answer to IncrementalAlterConfigs and lives until the end of this function.
    unsafe {
        let result = rd::rd_kafka_event_IncrementalAlterConfigs_result(answer.ptr());
        for resource in list(result, rd::rd_kafka_IncrementalAlterConfigs_result_resources) {
            let code = rd::rd_kafka_ConfigResource_error(*resource);
            if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return Err(refusal(code, rd::rd_kafka_ConfigResource_error_string(*resource)));
            }
        }
    }
    Ok(())
}

/// The last thing the client complained about, such as a connection that was refused. Whatever else
/// has gathered is thrown away: nobody reads the main queue of an admin client.
pub(crate) fn last_complaint<C: ClientContext>(client: &Client<C>) -> Option<String> {
    // SAFETY: the client is alive; the reference to its queue is given back when `main` is dropped.
    let main = unsafe { rd::rd_kafka_queue_get_main(client.native_ptr()) };
    let main = Owned::new(main, rd::rd_kafka_queue_destroy)?;
    let mut last = None;
    let next = || {
        // SAFETY: the queue is alive.
        let event = unsafe { rd::rd_kafka_queue_poll(main.ptr(), 0) };
        Owned::new(event, rd::rd_kafka_event_destroy)
    };
    while let Some(event) = next() {
        // SAFETY: the event is alive, and its text is copied.
        unsafe {
            match rd::rd_kafka_event_type(event.ptr()) {
                rd::RD_KAFKA_EVENT_ERROR => last = Some(owned(rd::rd_kafka_event_error_string(event.ptr()))),
                rd::RD_KAFKA_EVENT_LOG => last = error_line(&event).or(last),
                _ => {}
            }
        }
    }
    last
}

fn error_line(event: &Owned<Event>) -> Option<String> {
    const ERROR: c_int = 3;
    let (mut facility, mut line, mut level) = (std::ptr::null(), std::ptr::null(), 0);
    // SAFETY: the event is alive, and all three places can be written to.
    let read = unsafe { rd::rd_kafka_event_log(event.ptr(), &mut facility, &mut line, &mut level) };
    // SAFETY: the line belongs to the event.
    let line = (read == 0 && level <= ERROR).then(|| unsafe { owned(line) })?;
    // `[thrd:...]: ` comes first, and is of no use to whoever reads the reason.
    Some(line.split_once("]: ").map_or(line.clone(), |(_, rest)| rest.to_owned()))
}

/// Sends a request by `send` and waits for its answer.
fn ask<C: ClientContext>(
    client: &Client<C>,
    operation: rd::rd_kafka_admin_op_t,
    timeout: Duration,
    send: impl FnOnce(*const Options, *mut Queue),
) -> Result<Owned<Event>, Refused> {
    // SAFETY: the client is alive, here and in the two calls below.
    let options = unsafe { rd::rd_kafka_AdminOptions_new(client.native_ptr(), operation) };
    let options = Owned::new(options, rd::rd_kafka_AdminOptions_destroy).ok_or_else(out_of_memory)?;
    let millis = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
    let mut why = Reason::default();
    // SAFETY: the options are alive, and the buffer is as long as is said.
    accepted(unsafe {
        rd::rd_kafka_AdminOptions_set_request_timeout(options.ptr(), millis, why.ptr(), why.size())
    })?;
    // SAFETY: as above.
    let queue = unsafe { rd::rd_kafka_queue_new(client.native_ptr()) };
    let queue = Owned::new(queue, rd::rd_kafka_queue_destroy).ok_or_else(out_of_memory)?;
    send(options.ptr(), queue.ptr());
    // The request ends in time by itself; the rest is for it to say so.
    // SAFETY: the queue is alive, and only this thread polls it.
    let event = unsafe { rd::rd_kafka_queue_poll(queue.ptr(), millis.saturating_add(2_000)) };
    let event = Owned::new(event, rd::rd_kafka_event_destroy);
    let event = event.ok_or_else(|| Refused::from_code(RDKafkaErrorCode::OperationTimedOut))?;
    // SAFETY: the event is alive, and its text is copied.
    unsafe {
        let code = rd::rd_kafka_event_error(event.ptr());
        if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Err(refusal(code, rd::rd_kafka_event_error_string(event.ptr())));
        }
    }
    Ok(event)
}

/// # Safety
/// The results are of an event that is still alive.
unsafe fn whole(results: &[*const rd::rd_kafka_topic_result_t]) -> Result<(), Refused> {
    for result in results {
        // SAFETY: as the caller promises.
        unsafe {
            let code = rd::rd_kafka_topic_result_error(*result);
            if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return Err(refusal(code, rd::rd_kafka_topic_result_error_string(*result)));
            }
        }
    }
    Ok(())
}

/// What `read` finds in `holder`.
///
/// # Safety
/// `holder` is none or alive as long as the list is used, and `read` is librdkafka's function for it.
unsafe fn list<'a, H, T>(
    holder: *const H,
    read: unsafe extern "C" fn(*const H, *mut usize) -> *mut *const T,
) -> &'a [*const T] {
    if holder.is_null() {
        return &[];
    }
    let mut length = 0;
    // SAFETY: as the caller promises; librdkafka says how many there are.
    unsafe {
        let first = read(holder, &mut length);
        if first.is_null() { &[] } else { slice::from_raw_parts(first, length) }
    }
}

/// # Safety
/// The text is none, or ends with a zero and is alive.
unsafe fn owned(native: *const c_char) -> String {
    if native.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(native) }.to_string_lossy().into_owned()
}

/// # Safety
/// As for [`owned`].
unsafe fn refusal(code: RDKafkaRespErr, why: *const c_char) -> Refused {
    // SAFETY: as the caller promises.
    Refused::new(code.into(), unsafe { owned(why) })
}

fn accepted(code: RDKafkaRespErr) -> Result<(), Refused> {
    match code {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        code => Err(Refused::from_code(code.into())),
    }
}

fn text(text: &str) -> Result<CString, Refused> {
    CString::new(text).map_err(|_| Refused::of("a text holds a zero byte"))
}

fn out_of_memory() -> Refused {
    Refused::of("librdkafka gave nothing")
}

/// Where librdkafka writes why it refuses something.
struct Reason([c_char; 512]);

impl Default for Reason {
    fn default() -> Self {
        Self([0; 512])
    }
}

impl Reason {
    fn ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr()
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    fn refusal(&self) -> Refused {
        // SAFETY: librdkafka ends what it writes with a zero, and the buffer began as zeros.
        Refused::new(RDKafkaErrorCode::InvalidArgument, unsafe { owned(self.0.as_ptr()) })
    }
}
