//! Endpoints that do not answer, or not as they should: each has its class, and nothing breaks.

mod ground;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ground::raw::{Raw, request, write};
use ground::{header, run, send, sleep, stage, until, until_status};
use redrive::testkit::Stage;
use redrive::{Event, Running};
use tokio::net::TcpSocket;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const QUICK: &str = "retry.transient = \"list(20ms x1)\"\nretry.outage = \"exponential(50ms..50ms x1)\"\n\
                     retry.not-ready = \"list(50ms x1)\"\nsurge-guard = \"off\"\n";

fn keys(url: &str, more: &str) -> String {
    format!("handler.http.url = \"{url}\"\n{QUICK}{more}")
}

/// Runs with a rule that makes this code permanent, so that a letter tells what was known of the fault.
async fn letter_of(code: &str, url: &str, more: &str) -> redrive::Record {
    let stage = stage().await;
    let rule = format!("[[subscription.classify]]\ncode = \"{code}\"\nclass = \"permanent\"\n");
    let running = run(&stage, &keys(url, &format!("{more}\n{rule}"))).await;
    send(&stage, &["one"]).await;
    let letter = stage.letters("orders.g.dlq", 1).await.unwrap().remove(0);
    running.stop().await.unwrap();
    assert_eq!(header(&letter, "redrive-error-type"), format!("http.{code}"));
    letter
}

/// Runs on an endpoint that fails until it is told to stop that: an outage, and no letter.
async fn is_an_outage(url: &str, more: &str, mend: impl FnOnce()) {
    let stage = stage().await;
    let running = run(&stage, &keys(url, more)).await;
    send(&stage, &["one"]).await;
    let blocked = |status: &redrive::Status| status.problems.iter().any(|one| one.what.contains("outage"));
    until_status(&running, "an outage", blocked).await;
    mend();
    let status = until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!(status.counts.buried, 0);
    running.stop().await.unwrap();
}

/// Where nobody listens: a port that no system gives out.
const NOBODY: &str = "http://127.0.0.1:1/a?token=x";

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_not_there_is_an_outage_until_it_is() {
    // Taken, so that nobody else gets it, and refusing until somebody listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let server = Mutex::new(None);
    is_an_outage(&format!("http://127.0.0.1:{port}/records"), "", || {
        let listener = socket.listen(16).unwrap().into_std().unwrap();
        listener.set_nonblocking(false).unwrap();
        *server.lock().unwrap() = Some(Raw::on(listener, |_, mut stream| {
            while request(&mut stream).is_some() {
                write(&mut stream, OK);
            }
        }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_not_to_connect_has_its_code() {
    let letter = letter_of("refused", NOBODY, "").await;
    let told = header(&letter, "redrive-error-message");
    assert!(told.ends_with("/a: connection refused") && !told.contains("token"), "{told}");
    letter_of("dns", "http://no-such-host.invalid/", "").await;
    letter_of("refused", "http+unix:///nowhere/at-all.sock:/a", "").await;
    // A server that does not speak TLS.
    let plain = Raw::new(|_, mut stream| {
        let _ = stream.read(&mut [0; 64]);
        write(&mut stream, "HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    letter_of("tls", &format!("https://127.0.0.1:{}/", plain.port), "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_before_the_answer_are_outages() {
    type Breaks = fn(TcpStream);
    let ways: [(&str, Breaks); 4] = [
        ("reset", |stream| drop(stream)),
        ("reset", |mut stream| {
            request(&mut stream);
            stream.shutdown(Shutdown::Both).unwrap();
        }),
        ("reset", |mut stream| {
            request(&mut stream);
            write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-");
        }),
        ("protocol", |mut stream| {
            request(&mut stream);
            write(&mut stream, "SSH-2.0-OpenSSH_9.9\r\n\r\n");
        }),
    ];
    for (code, breaks) in ways {
        let server = Raw::new(move |_, stream| breaks(stream));
        letter_of(code, &server.url(), "").await;
        let mended = Arc::new(AtomicBool::new(false));
        let server = Raw::new({
            let mended = mended.clone();
            move |_, mut stream| match mended.load(Ordering::SeqCst) {
                false => breaks(stream),
                true => {
                    while request(&mut stream).is_some() {
                        write(&mut stream, OK);
                    }
                }
            }
        });
        is_an_outage(&server.url(), "", || mended.store(true, Ordering::SeqCst)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_ends_with_the_timeout_and_is_not_used_again() {
    let (closed, heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = Raw::new({
        let (closed, heard) = (closed.clone(), heard.clone());
        move |number, mut stream| {
            while request(&mut stream).is_some() {
                heard.fetch_add(1, Ordering::SeqCst);
                // The first says nothing more, ever; the end of the connection is all it waits for.
                if number > 0 {
                    write(&mut stream, OK);
                }
            }
            closed.fetch_add(1, Ordering::SeqCst);
        }
    });
    let stage = stage().await;
    let timeouts = "timeout = \"4s\"\nretry-timeout = \"20s\"";
    let running = run(&stage, &keys(&server.url(), timeouts)).await;
    send(&stage, &["one"]).await;
    let status = until_status(&running, "handled", |status| status.counts.handled == 1).await;
    until("the connection of the attempt that was ended is closed", || closed.load(Ordering::SeqCst) > 0)
        .await;
    assert_eq!((status.counts.buried, status.counts.attempts), (0, 2));
    assert_eq!((server.connections(), heard.load(Ordering::SeqCst)), (2, 2));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_that_was_closed_meanwhile_costs_no_attempt() {
    // Each connection serves one request and is closed behind it, without a word about that.
    let closed = Arc::new(AtomicU64::new(0));
    let server = Raw::new({
        let closed = closed.clone();
        move |_, mut stream| {
            request(&mut stream);
            write(&mut stream, OK);
            drop(stream);
            closed.fetch_add(1, Ordering::SeqCst);
        }
    });
    let stage = stage().await;
    let running = run(&stage, &keys(&server.url(), "")).await;
    for number in 1..=20 {
        send(&stage, &[&number.to_string()]).await;
        until_status(&running, "handled", |status| status.counts.handled == number).await;
        until("it is closed", || closed.load(Ordering::SeqCst) == number).await;
    }
    let status = running.statuses()[0].borrow().clone();
    assert_eq!((status.counts.attempts, server.connections()), (20, 20));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept() {
    let server = Raw::new(|_, mut stream| {
        while request(&mut stream).is_some() {
            write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
        }
    });
    let stage = stage().await;
    let running = run(&stage, &keys(&server.url(), "concurrency = 1")).await;
    for number in 1..=20 {
        send(&stage, &[&number.to_string()]).await;
        until_status(&running, "handled", |status| status.counts.handled == number).await;
    }
    assert_eq!(server.connections(), 1);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_kept_behind_any_whole_body_and_not_behind_close() {
    let server = Raw::new(|number, mut stream| {
        let close = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let chunks = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                      5\r\nhello\r\n0\r\n\r\n";
        let mut answers = [chunks, "HTTP/1.1 204 No Content\r\n\r\n", close, OK].into_iter();
        while request(&mut stream).is_some() {
            write(&mut stream, if number == 0 { answers.next().unwrap() } else { OK });
        }
    });
    let stage = stage().await;
    let running = run(&stage, &keys(&server.url(), "concurrency = 1")).await;
    for number in 1..=6 {
        send(&stage, &[&number.to_string()]).await;
        until_status(&running, "handled", |status| status.counts.handled == number).await;
    }
    let status = running.statuses()[0].borrow().clone();
    assert_eq!((status.counts.attempts, server.connections()), (6, 2));
    running.stop().await.unwrap();
}

async fn ended(stage: &Stage, running: Running, handled: u64) -> Vec<redrive::Record> {
    until_status(&running, "done", |status| status.counts.handled == handled && status.counts.buried == 1)
        .await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
    letters
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_an_answer_counts_however_its_body_goes() {
    // What is answered to each: 100 MB, a body that never ends, one that breaks off; with 200 and with 409.
    let megabytes = Arc::new(AtomicUsize::new(0));
    let written = megabytes.clone();
    let server = Raw::new(move |_, mut stream| {
        while let Some(request) = request(&mut stream) {
            let status = if request.contains("good") { "200 OK" } else { "409 Conflict" };
            if request.ends_with("large") {
                write(&mut stream, &format!("HTTP/1.1 {status}\r\ncontent-length: 104857600\r\n\r\n"));
                let megabyte = vec![b'x'; 1 << 20];
                for _ in 0..100 {
                    if stream.write_all(&megabyte).is_err() {
                        return;
                    }
                    written.fetch_add(1, Ordering::SeqCst);
                }
            } else if request.ends_with("slow") {
                write(&mut stream, &format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n"));
                for _ in 0..600 {
                    if stream.write_all(b"1\r\nx\r\n").is_err() {
                        return;
                    }
                    wait(50);
                }
            } else {
                write(&mut stream, &format!("HTTP/1.1 {status}\r\ncontent-length: 50\r\n\r\nshort"));
                return;
            }
        }
    });
    for (kind, told) in [("large", "xxx"), ("slow", "xxx"), ("short", "short")] {
        let stage = stage().await;
        let running = run(&stage, &keys(&server.url(), "")).await;
        send(&stage, &[&format!("good {kind}"), &format!("bad {kind}")]).await;
        let letters = ended(&stage, running, 1).await;
        assert_eq!(header(&letters[0], "redrive-error-type"), "http.409", "{kind}");
        let message = header(&letters[0], "redrive-error-message");
        assert!(message.starts_with(&format!("409 Conflict: {told}")) && message.len() < 600, "{message}");
        assert_eq!(header(&letters[0], "redrive-attempt"), "1");
    }
    // Two answers of 100 MB: all but what the sockets hold was never taken.
    let megabytes = megabytes.load(Ordering::SeqCst);
    assert!(megabytes < 40, "{megabytes} MB were taken");
}

/// Waits on a thread of its own, which nothing else runs on.
fn wait(millis: u64) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(millis));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let elsewhere = Raw::new(|_, mut stream| {
        request(&mut stream);
        write(&mut stream, OK);
    });
    let to = elsewhere.url();
    let server = Raw::new(move |_, mut stream| {
        while request(&mut stream).is_some() {
            let head =
                format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            write(&mut stream, &head);
        }
    });
    let stage = stage().await;
    let running = run(&stage, &keys(&server.url(), "")).await;
    send(&stage, &["one"]).await;
    let letters = ended(&stage, running, 0).await;
    assert!(header(&letters[0], "redrive-error-message").ends_with("which is not followed"));
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stuck_endpoint_does_not_slow_another() {
    let stuck = Raw::new(|_, mut stream| while request(&mut stream).is_some() {});
    let quick = Raw::new(|_, mut stream| {
        while request(&mut stream).is_some() {
            write(&mut stream, OK);
        }
    });
    let stage = stage().await;
    let one = redrive_push::handled(&ground::configured(&keys(&stuck.url(), ""))).unwrap();
    let mut other = ground::configured(&keys(&quick.url(), ""));
    other.group = "h".to_owned();
    other.letters = "orders.h.dlq".parse().unwrap();
    other.shelf = "orders.h.shelf".parse().unwrap();
    let other = redrive_push::handled(&other).unwrap();
    let worker = redrive::Worker::new(stage.cluster()).subscribe(one).subscribe(other);
    let running = worker.start().await.unwrap();
    let values: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    send(&stage, &values.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut status = running.statuses()[1].clone();
    tokio::select! {
        found = status.wait_for(|status| status.counts.handled == 200) => drop(found.unwrap()),
        // The one that is stuck takes longer.
        () = sleep(25_000) => panic!("not in time"),
    }
}

/// The listener is only here to show that an outage sets nothing aside.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_tells_listeners_nothing() {
    let stage = stage().await;
    let heard = Arc::new(AtomicUsize::new(0));
    let subscription = redrive_push::handled(&ground::configured(&keys(NOBODY, "")));
    let subscription = subscription.unwrap().listener({
        let heard = heard.clone();
        move |_: &Event<'_>| {
            heard.fetch_add(1, Ordering::SeqCst);
        }
    });
    let running = redrive::Worker::new(stage.cluster()).subscribe(subscription).start().await.unwrap();
    send(&stage, &["one"]).await;
    until_status(&running, "some tries", |status| status.counts.attempts > 3).await;
    assert_eq!(heard.load(Ordering::SeqCst), 0);
    running.stop().await.unwrap();
}
