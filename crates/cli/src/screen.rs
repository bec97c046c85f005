//! What goes to the terminal: colours where there is one, and no fuss when the reader has left.

use std::env;
use std::io::{self, IsTerminal, Write};

use crate::exit::Exit;

pub(crate) use redrive_letters::told;

/// Writes data. A reader that has seen enough (`| head`) is not an error.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes data line by line, until the reader has seen enough.
pub(crate) fn lines(lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let written = lines.map(|line| stdout.write_all(line.as_bytes())).find(Result::is_err);
    match written.unwrap_or(Ok(())).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is left in the buffer would be tried once more.
            let _ = stdout.into_parts();
            Ok(())
        }
        result => result,
    }
}

/// Shows how far something has come, where a person watches; an empty text takes it away.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }
}

/// Writes a message for a person.
pub(crate) fn say(text: &str) {
    // Where stderr is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether messages may be coloured.
pub(crate) fn is_coloured() -> bool {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !unwanted
}

/// Whether a person is there to be asked.
pub(crate) fn has_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person; anything but yes is no.
pub(crate) fn is_wanted(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Says that a command failed.
pub(crate) fn failed(error: &io::Error) -> Exit {
    say(&format!("error: cannot go on: {error}"));
    Exit::Failed
}
