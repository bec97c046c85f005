//! One connection: frames come in and are answered in order, one after the other; the next ones are
//! read meanwhile. What goes wrong here ends this connection and no other.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use kafka_protocol::messages::RequestHeader;
use kafka_protocol::protocol::Decodable;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::frame::Frames;
use super::versions;
use crate::api::{self, Answer, Call};
use crate::node::Node;
use crate::sync::set;

/// Requests that wait for their turn, beside the bound on their bytes.
const READ_AHEAD: usize = 32;

/// A request that was read, and its share of the bytes that may wait.
struct Waiting {
    frame: Bytes,
    _share: OwnedSemaphorePermit,
}

/// Serves a client until it leaves, misbehaves or the broker stops.
pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, node: Arc<Node>, stop: watch::Receiver<bool>) {
    let Ok(local) = stream.local_addr() else { return };
    // Small replies must not wait for more: the client waits for them.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let (input, mut output) = stream.into_split();
    let (queue, mut requests) = mpsc::channel(READ_AHEAD);
    let (gone, is_gone) = watch::channel(false);
    let max = node.config.max_request_bytes;
    // A set, because it ends its task when it is dropped, however this function ends.
    let mut reading = JoinSet::new();
    reading.spawn(read_ahead(input, queue, gone, max));
    let mut stopped = stop.clone();
    let answering = async {
        while let Some(Waiting { frame, _share }) = requests.recv().await {
            let Some(call) = parse(frame, peer, local, is_gone.clone(), stop.clone()) else {
                return;
            };
            match api::answer(&node, call).await {
                Answer::Reply(reply) => {
                    if reply.write(&mut output).await.is_err() {
                        return;
                    }
                }
                Answer::Silence => {}
                Answer::Close(reason) => {
                    warn!(%peer, reason, "closed a connection");
                    return;
                }
            }
            if *stop.borrow() {
                return;
            }
        }
    };
    let idle_stop = async {
        // A broker that stops lets the request in hand finish; one that waits for a request is cut.
        set(&mut stopped).await;
        crate::clock::sleep(std::time::Duration::from_millis(200)).await;
    };
    tokio::select! {
        () = answering => {}
        () = idle_stop => {}
    }
}

async fn read_ahead(
    input: OwnedReadHalf,
    queue: mpsc::Sender<Waiting>,
    gone: watch::Sender<bool>,
    max: usize,
) {
    let mut frames = Frames::new(input, max);
    let room = Arc::new(Semaphore::new(max.max(1)));
    loop {
        let next = async {
            let Some(length) = frames.length().await? else {
                return Ok(None);
            };
            let share = room
                .clone()
                .acquire_many_owned(length as u32)
                .await
                .expect("never closed");
            Ok::<_, std::io::Error>(Some(Waiting {
                frame: frames.body(length).await?,
                _share: share,
            }))
        };
        match next.await {
            Ok(Some(waiting)) => {
                if queue.send(waiting).await.is_err() {
                    return;
                }
            }
            Ok(None) => break,
            Err(cause) => {
                debug!(%cause, "cannot read a frame");
                break;
            }
        }
    }
    // What waits for this client need not wait any longer; what it sent before is still done.
    gone.send_replace(true);
}

/// Takes the header off a frame; nothing if there is none, or an API that is not spoken.
fn parse(
    frame: Bytes,
    peer: SocketAddr,
    local: SocketAddr,
    gone: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
) -> Option<Call> {
    if frame.len() < 8 {
        warn!(%peer, "closed a connection: a frame without a header");
        return None;
    }
    let mut head = &frame[..8];
    let (key, version, correlation_id) = (head.get_i16(), head.get_i16(), head.get_i32());
    let mut call = Call {
        api: versions::find(key, version),
        key,
        version,
        correlation_id,
        client_id: String::new(),
        body: Bytes::new(),
        peer,
        local,
        gone,
        stop,
    };
    let Some(api) = call.api else { return Some(call) };
    let mut rest = frame;
    let header = match RequestHeader::decode(&mut rest, api.request_header_version(version)) {
        Ok(header) => header,
        Err(cause) => {
            warn!(%peer, %cause, "closed a connection: a header that cannot be decoded");
            return None;
        }
    };
    call.client_id = header.client_id.map_or_else(String::new, |id| id.to_string());
    call.body = rest;
    Some(call)
}
