//! A body in chunks: which bytes are of the body, and where it ends.

use super::Lost;

/// More than this is not taken for the size of a chunk, nor for what stands behind the last.
const MOST: usize = 16 * 1_024;

/// Where in such a body the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    Size,
    Data(u64),
    DataEnd,
    /// Behind the last chunk, after so many bytes.
    Trailers(usize),
    Over,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// That is not known before more of them are there.
    More,
    /// So many are not of the body.
    Passed(usize),
    /// So many are.
    Data(usize),
}

impl Chunks {
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, Lost> {
        match *self {
            Self::Size => match httparse::parse_chunk_size(bytes) {
                Ok(httparse::Status::Complete((length, size))) => {
                    *self = if size == 0 { Self::Trailers(0) } else { Self::Data(size) };
                    Ok(Step::Passed(length))
                }
                Ok(httparse::Status::Partial) if bytes.len() < MOST => Ok(Step::More),
                Ok(httparse::Status::Partial) | Err(_) => Err(Lost::NotHttp("the size of a chunk is none")),
            },
            Self::Data(left) => {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                if here == 0 {
                    return Ok(Step::More);
                }
                let left = left - here as u64;
                *self = if left == 0 { Self::DataEnd } else { Self::Data(left) };
                Ok(Step::Data(here))
            }
            Self::DataEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = Self::Size;
                    Ok(Step::Passed(2))
                }
                [] | [b'\r'] => Ok(Step::More),
                _ => Err(Lost::NotHttp("a chunk is longer than its size")),
            },
            Self::Trailers(passed) => {
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                    let is_too_long = passed + bytes.len() > MOST;
                    return if is_too_long { Err(TRAILERS) } else { Ok(Step::More) };
                };
                let is_last = matches!(&bytes[..end], [] | [b'\r']);
                *self = if is_last { Self::Over } else { Self::Trailers(passed + end + 1) };
                if passed > MOST { Err(TRAILERS) } else { Ok(Step::Passed(end + 1)) }
            }
            Self::Over => Ok(Step::More),
        }
    }
}

const TRAILERS: Lost = Lost::NotHttp("there is too much behind the body");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The body, read in pieces of this size; and what was left of the bytes.
    fn read(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize), Lost> {
        let (mut chunks, mut body, mut from, mut to) = (Chunks::Size, Vec::new(), 0, 0);
        while chunks != Chunks::Over {
            match chunks.step(&bytes[from..to])? {
                Step::More if to == bytes.len() => return Err(Lost::Closed),
                Step::More => to = (to + piece).min(bytes.len()),
                Step::Passed(count) => from += count,
                Step::Data(count) => {
                    body.extend_from_slice(&bytes[from..from + count]);
                    from += count;
                }
            }
        }
        Ok((body, bytes.len() - from))
    }

    #[test]
    fn chunks_have_extensions_and_trailers() {
        for piece in [1, 2, 7, 100] {
            let sent = b"3;a=b\r\nabc\r\n0A\r\n0123456789\r\n0\r\nx: y\r\nz: 1\r\n\r\nHTTP";
            assert_eq!(read(sent, piece).unwrap(), (b"abc0123456789".to_vec(), 4));
            assert_eq!(read(b"0\r\n\r\n", piece).unwrap(), (Vec::new(), 0));
        }
    }

    #[test]
    fn what_is_no_chunk_is_found_out() {
        for bad in ["x\r\n", "-1\r\n", "3\r\nabcd\r\n", "11111111111111111\r\n"] {
            assert!(matches!(read(bad.as_bytes(), 3), Err(Lost::NotHttp(_))), "{bad}");
        }
        let endless = format!("0\r\n{}", "x: y\r\n".repeat(MOST));
        assert!(matches!(read(endless.as_bytes(), 100), Err(Lost::NotHttp(_))));
        let endless = format!("0\r\n{}", "x".repeat(2 * MOST));
        assert!(matches!(read(endless.as_bytes(), 100), Err(Lost::NotHttp(_))));
        let endless = format!("1;{}", "x".repeat(2 * MOST));
        assert!(matches!(read(endless.as_bytes(), 100), Err(Lost::NotHttp(_))));
        assert!(matches!(read(b"5\r\nab", 3), Err(Lost::Closed)));
    }

    proptest! {
        #[test]
        fn whatever_is_sent_comes(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            piece in 1_usize..30,
        ) {
            let mut sent = Vec::new();
            for part in &parts {
                sent.extend(format!("{:x}\r\n", part.len()).into_bytes());
                sent.extend(part);
                sent.extend(b"\r\n");
            }
            sent.extend(b"0\r\n\r\n");
            prop_assert_eq!(read(&sent, piece).unwrap(), (parts.concat(), 0));
        }

        #[test]
        fn nothing_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..60), piece in 1_usize..9) {
            let _ = read(&bytes, piece);
        }
    }
}
