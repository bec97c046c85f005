//! Queues of librdkafka: one of our own that partitions are led to and that is emptied many messages
//! at a time, and a look at the consumer's main queue.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use rdkafka::TopicPartitionList;
use rdkafka::bindings as rd;
use rdkafka::client::NativeClient;
use rdkafka::error::KafkaError;
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};

use crate::wake::Wake;

/// A queue. It must be dropped before its client is.
pub(crate) struct Queue {
    queue: NonNull<rd::rd_kafka_queue_t>,
    /// What the queue's callback points to.
    wake: Option<Arc<Wake>>,
}

// SAFETY: librdkafka's queues are made to be used from any thread; each takes its own lock.
unsafe impl Send for Queue {}
// SAFETY: as above; no method hands out a reference into the queue.
unsafe impl Sync for Queue {}

impl Queue {
    /// A new, empty queue that wakes when it is no longer empty.
    pub(crate) fn new(client: &NativeClient, wake: Arc<Wake>) -> Self {
        // SAFETY: the client is alive, as the reference shows; the queue is ours until `drop`.
        let queue = unsafe { rd::rd_kafka_queue_new(client.ptr()) };
        Self { queue: NonNull::new(queue).expect("a queue"), wake: None }.waking(wake)
    }

    /// The queue of a producer's reports, which wakes when it is no longer empty.
    pub(crate) fn reports(client: &NativeClient, wake: Arc<Wake>) -> Self {
        // SAFETY: the client is alive; the call adds a reference that `drop` gives back.
        let queue = unsafe { rd::rd_kafka_queue_get_main(client.ptr()) };
        Self { queue: NonNull::new(queue).expect("a queue"), wake: None }.waking(wake)
    }

    fn waking(mut self, wake: Arc<Wake>) -> Self {
        let wake = &**self.wake.insert(wake);
        // SAFETY: the callback gets what it casts back to; `wake` lives as long as the queue, whose drop
        // takes the callback away first.
        unsafe {
            rd::rd_kafka_queue_cb_event_enable(
                self.queue.as_ptr(),
                Some(no_longer_empty),
                ptr::from_ref(wake).cast_mut().cast(),
            );
        }
        self
    }

    /// The queue of rebalances, errors and commits.
    pub(crate) fn main(client: &NativeClient) -> Option<Self> {
        // SAFETY: the client is alive; the call adds a reference that `drop` gives back.
        let queue = unsafe { rd::rd_kafka_queue_get_consumer(client.ptr()) };
        Some(Self { queue: NonNull::new(queue)?, wake: None })
    }

    /// Has the client commit these offsets; what came of it will be in this queue.
    pub(crate) fn commit(
        &self,
        client: &NativeClient,
        offsets: &TopicPartitionList,
    ) -> Result<(), KafkaError> {
        // SAFETY: all three are alive; the list is copied, and librdkafka keeps a reference of its own to the queue.
        let code = unsafe {
            rd::rd_kafka_commit_queue(client.ptr(), offsets.ptr(), self.queue.as_ptr(), None, ptr::null_mut())
        };
        match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(KafkaError::ConsumerCommit(code.into())),
        }
    }

    /// Leads what is fetched of a partition to this queue. False if there can be no such partition.
    pub(crate) fn lead(&self, client: &NativeClient, topic: &CString, partition: i32) -> bool {
        // SAFETY: the client is alive and the name ends with a zero; the reference is given back below.
        let from = unsafe { rd::rd_kafka_queue_get_partition(client.ptr(), topic.as_ptr(), partition) };
        if from.is_null() {
            return false;
        }
        // SAFETY: both queues are alive; librdkafka keeps references of its own to what it leads where.
        unsafe {
            rd::rd_kafka_queue_forward(from, self.queue.as_ptr());
            rd::rd_kafka_queue_destroy(from);
        }
        true
    }

    /// How many things wait in it.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the queue is alive.
        unsafe { rd::rd_kafka_queue_length(self.queue.as_ptr()) }
    }

    /// Takes what is there, as much as the room holds, without waiting. With less than that, the queue
    /// was empty at the end.
    pub(crate) fn take(&self, room: &mut Room, mut each: impl FnMut(Message<'_>)) -> usize {
        // SAFETY: the room has space for as many pointers as it says.
        let taken = unsafe {
            rd::rd_kafka_consume_batch_queue(self.queue.as_ptr(), 0, room.0.as_mut_ptr(), room.0.len())
        };
        let taken = usize::try_from(taken).unwrap_or(0);
        for message in &room.0[..taken] {
            // SAFETY: the first `taken` pointers are messages that are ours until they are destroyed,
            // and the borrow ends before that.
            unsafe {
                each(Message(&**message));
                rd::rd_kafka_message_destroy(*message);
            }
        }
        taken
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the queue is alive until here. Without a callback, nothing points to `wake` any more;
        // librdkafka calls it under the queue's lock, so no call is under way.
        unsafe {
            if self.wake.is_some() {
                rd::rd_kafka_queue_cb_event_enable(self.queue.as_ptr(), None, ptr::null_mut());
            }
            rd::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
    }
}

unsafe extern "C" fn no_longer_empty(_client: *mut rd::rd_kafka_t, wake: *mut c_void) {
    // SAFETY: `Queue::new` gave it, and the queue keeps it alive.
    let wake = unsafe { &*wake.cast::<Wake>() };
    wake.wake();
}

/// Where a partition ended when it was last fetched, if it ever was.
pub(crate) fn known_end(client: &NativeClient, topic: &CStr, partition: i32) -> Option<i64> {
    let (mut first, mut end) = (-1, -1);
    // SAFETY: the client is alive, the name ends with a zero, and both numbers are there to be written to.
    let known = unsafe {
        rd::rd_kafka_get_watermark_offsets(client.ptr(), topic.as_ptr(), partition, &mut first, &mut end)
    };
    (known == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR && end >= 0).then_some(end)
}

/// Space for the messages of one taking.
pub(crate) struct Room(Vec<*mut rd::rd_kafka_message_t>);

// SAFETY: the pointers mean something only within `Queue::take`, which has the room to itself.
unsafe impl Send for Room {}

impl Room {
    pub(crate) fn of(messages: usize) -> Self {
        Self(vec![ptr::null_mut(); messages.max(1)])
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A message in librdkafka's memory.
pub(crate) struct Message<'a>(&'a rd::rd_kafka_message_t);

impl<'a> Message<'a> {
    /// The name of its topic.
    pub(crate) fn topic(&self) -> Cow<'a, str> {
        if self.0.rkt.is_null() {
            return Cow::Borrowed("");
        }
        // SAFETY: the message is alive and keeps its topic, whose name ends with a zero.
        unsafe { CStr::from_ptr(rd::rd_kafka_topic_name(self.0.rkt)) }.to_string_lossy()
    }

    pub(crate) fn partition(&self) -> i32 {
        self.0.partition
    }

    pub(crate) fn offset(&self) -> i64 {
        self.0.offset
    }

    pub(crate) fn key(&self) -> Option<&'a [u8]> {
        // SAFETY: librdkafka's pointer and length of the key, alive with the message.
        unsafe { bytes(self.0.key, self.0.key_len) }
    }

    pub(crate) fn value(&self) -> Option<&'a [u8]> {
        // SAFETY: as with the key.
        unsafe { bytes(self.0.payload, self.0.len) }
    }

    /// Milliseconds since 1970, if the record has a timestamp.
    pub(crate) fn timestamp(&self) -> Option<i64> {
        let mut kind = rd::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is alive, and the kind is ours.
        let millis = unsafe { rd::rd_kafka_message_timestamp(self.0, &raw mut kind) };
        let none = kind == rd::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || millis == -1;
        (!none).then_some(millis)
    }

    /// Calls for each header in order.
    pub(crate) fn headers(&self, mut each: impl FnMut(&str, Option<&[u8]>)) {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is alive and keeps its headers; they are only read.
        let found = unsafe { rd::rd_kafka_message_headers(self.0, &raw mut headers) };
        if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return;
        }
        for index in 0.. {
            let (mut name, mut value, mut size): (*const c_char, *const c_void, usize) =
                (ptr::null(), ptr::null(), 0);
            // SAFETY: the headers are alive with the message; the three are ours.
            let found = unsafe {
                rd::rd_kafka_header_get_all(headers, index, &raw mut name, &raw mut value, &raw mut size)
            };
            if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return;
            }
            // SAFETY: a name ends with a zero; the value has this size; both live with the message.
            let (name, value) = unsafe { (CStr::from_ptr(name), bytes(value, size)) };
            // Nearly all are text, which is found out faster than what is not.
            match name.to_str() {
                Ok(name) => each(name, value),
                Err(_) => each(&name.to_string_lossy(), value),
            }
        }
    }

    /// If it is no record but an error: which, and librdkafka's words.
    pub(crate) fn error(&self) -> Option<(RDKafkaErrorCode, String)> {
        if self.0.err == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        // SAFETY: the message is alive; the text lives with it, or for ever.
        let words = unsafe {
            let words = rd::rd_kafka_message_errstr(self.0);
            if words.is_null() { String::new() } else { CStr::from_ptr(words).to_string_lossy().into_owned() }
        };
        Some((self.0.err.into(), words))
    }
}

/// # Safety
/// `start` is null or the start of `size` bytes that live as long as `'a`.
unsafe fn bytes<'a>(start: *const c_void, size: usize) -> Option<&'a [u8]> {
    if start.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { slice::from_raw_parts(start.cast(), size) })
}
