//! One process feeds an index at a time; another that wants to waits a little, and then takes what is there.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use redrive::Clock;

use crate::error::Error;

const TURN: Duration = Duration::from_millis(50);

/// The right to feed, until it is dropped or the process ends.
pub(crate) struct Lock {
    _file: File,
}

/// The right to feed, if it can be had in time.
pub(crate) async fn take(
    folder: &Path,
    name: &str,
    clock: &Clock,
    wait: Duration,
) -> Result<Option<Lock>, Error> {
    let failed = |source| Error::Folder { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let file = File::create(folder.join(format!("{name}.lock"))).map_err(failed)?;
    let until = clock.now().steady + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) if clock.now().steady >= until => return Ok(None),
            Err(TryLockError::WouldBlock) => clock.sleep(TURN).await,
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}
