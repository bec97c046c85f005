//! Lines that another program writes: read within limits, whatever comes.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines, none of which takes more than so many bytes of memory.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    most: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self { reader: BufReader::new(reader), most }
    }

    /// The next line without its end; what is longer than the limit is cut off. None at the end.
    pub(super) async fn next(&mut self) -> Option<String> {
        next(&mut self.reader, self.most).await
    }
}

async fn next(reader: &mut (impl AsyncBufRead + Unpin), most: usize) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let bytes = reader.fill_buf().await.ok()?;
        if bytes.is_empty() {
            let last = !line.is_empty();
            return last.then(|| String::from_utf8_lossy(&line).into_owned());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(most - line.len())]);
        let used = end.map_or(bytes.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Some(String::from_utf8_lossy(&line).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_the_last_needs_no_end() {
        let text = format!("one\n\n{}\n\u{fffd}two", "x".repeat(100_000));
        let mut lines = Lines::new(text.as_bytes(), 10);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await {
            read.push(line);
        }
        assert_eq!(read, ["one", "", "xxxxxxxxxx", "\u{fffd}two"]);
    }
}
