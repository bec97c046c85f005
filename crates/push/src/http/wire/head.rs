//! The head of an answer: its status and headers, how long its body is, and whether the connection lives on.

use std::mem::MaybeUninit;

use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{HeaderMap, StatusCode};

use super::Lost;
use super::chunks::Chunks;

/// What is not understood within this is not read on.
pub(super) const LONGEST: usize = 400 * 1_024;
const MOST_HEADERS: usize = 100;

/// The head of an answer.
#[derive(Debug)]
pub(in super::super) struct Head {
    pub(in super::super) status: StatusCode,
    pub(in super::super) headers: HeaderMap,
    pub(super) length: Length,
    /// Whether the other side expects more requests on this connection.
    pub(super) keeps: bool,
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// So many bytes are to come.
    Known(u64),
    Chunks(Chunks),
    /// By the end of the connection.
    UntilClosed,
}

/// The head that the bytes begin with, and how long it is; none as long as it is not complete.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, Lost> {
    let mut space = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut read = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut read, bytes, &mut space) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(Lost::NotHttp("its head has no end")),
        Err(error) => return Err(Lost::Parse(error)),
    };
    let status = read.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Lost::NotHttp("it has no status"))?;
    let mut headers = HeaderMap::with_capacity(read.headers.len());
    for header in &*read.headers {
        let (name, value) =
            (HeaderName::from_bytes(header.name.as_bytes()), HeaderValue::from_bytes(header.value));
        let (Ok(name), Ok(value)) = (name, value) else { return Err(Lost::NotHttp("a header is none")) };
        headers.append(name, value);
    }
    let is_newer = read.version == Some(1);
    let keeps = if is_newer { !says(&headers, "close") } else { says(&headers, "keep-alive") };
    let length_of_body = length_of(status, &headers)?;
    // With two lengths somebody between may have gone by the other one.
    let is_clear = !(headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH));
    let keeps = keeps && is_clear && status != StatusCode::SWITCHING_PROTOCOLS;
    Ok(Some((Head { status, headers, length: length_of_body, keeps }, length)))
}

/// Whether `connection` has this word.
fn says(headers: &HeaderMap, word: &str) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
}

/// RFC 9112, 6.3.
fn length_of(status: StatusCode, headers: &HeaderMap) -> Result<Length, Lost> {
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(Length::Known(0));
    }
    if let Some(last) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
        let last = last.to_str().unwrap_or_default().rsplit(',').next().unwrap_or_default();
        let is_chunked = last.trim().eq_ignore_ascii_case("chunked");
        return Ok(if is_chunked { Length::Chunks(Chunks::Size) } else { Length::UntilClosed });
    }
    let mut known = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let said = value.to_str().unwrap_or_default().split(',').map(|one| number(one.trim()));
        for length in said {
            let length = length.ok_or(Lost::NotHttp("its length is no number"))?;
            if known.is_some_and(|known| known != length) {
                return Err(Lost::NotHttp("it has two lengths"));
            }
            known = Some(length);
        }
    }
    Ok(known.map_or(Length::UntilClosed, Length::Known))
}

fn number(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(lines: &str) -> Result<(Length, bool), Lost> {
        let bytes = format!("{}\r\n\r\nrest", lines.replace('\n', "\r\n"));
        let (head, length) = read(bytes.as_bytes())?.unwrap();
        assert_eq!(&bytes[length..], "rest");
        Ok((head.length, head.keeps))
    }

    #[test]
    fn a_body_is_as_long_as_its_head_says() {
        let chunks = Length::Chunks(Chunks::Size);
        for (lines, expected) in [
            ("HTTP/1.1 200 OK\ncontent-length: 5", (Length::Known(5), true)),
            ("HTTP/1.1 200\nContent-Length: 5\ncontent-length: 5, 5", (Length::Known(5), true)),
            ("HTTP/1.1 200 OK\ncontent-length: 5\nconnection: x, Close", (Length::Known(5), false)),
            ("HTTP/1.0 200 OK\ncontent-length: 5", (Length::Known(5), false)),
            ("HTTP/1.0 200 OK\ncontent-length: 5\nconnection: Keep-Alive", (Length::Known(5), true)),
            ("HTTP/1.1 200 OK\ntransfer-encoding: gzip, Chunked", (chunks, true)),
            ("HTTP/1.1 200 OK\ntransfer-encoding: chunked\ncontent-length: 5", (chunks, false)),
            ("HTTP/1.1 200 OK\ntransfer-encoding: gzip", (Length::UntilClosed, true)),
            ("HTTP/1.1 200 OK", (Length::UntilClosed, true)),
            ("HTTP/1.1 204 No Content\ncontent-length: 5", (Length::Known(0), true)),
            ("HTTP/1.1 304 Not Modified\ntransfer-encoding: chunked", (Length::Known(0), true)),
            ("HTTP/1.1 100 Continue", (Length::Known(0), true)),
            ("HTTP/1.1 101 Switching Protocols", (Length::Known(0), false)),
        ] {
            assert_eq!(head(lines).unwrap(), expected, "{lines}");
        }
    }

    #[test]
    fn what_is_not_http_is_found_out() {
        for bad in [
            "SSH-2.0-OpenSSH_9.9",
            "HTTP/1.1 99999 OK",
            "HTTP/1.1 099 OK",
            "HTTP/1.1 200 OK\ncontent-length: -5",
            "HTTP/1.1 200 OK\ncontent-length: +5",
            "HTTP/1.1 200 OK\ncontent-length: 5, 6",
            "HTTP/1.1 200 OK\ncontent-length: 99999999999999999999",
            "HTTP/1.1 200 OK\ncontent-length:",
            "HTTP/1.1 200 OK\nno header",
        ] {
            assert!(head(bad).is_err(), "{bad}");
        }
        let many = format!("HTTP/1.1 200 OK{}", "\na: b".repeat(MOST_HEADERS + 1));
        assert!(head(&many).is_err());
        let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(LONGEST));
        assert!(read(endless.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn nothing_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&bytes);
            let _ = read(&[b"HTTP/1.1 200 OK\r\n", &bytes[..]].concat());
        }
    }
}
