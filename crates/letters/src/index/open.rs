//! Opens the file, or makes it anew: where there is none, where it is of another version, where it is damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::Index;
use super::kinds::Kinds;
use super::write::Memory;
use crate::error::Error;
use crate::fingerprint;

const SCHEMA: &str = include_str!("schema.sql");

/// The version of the tables and of what is in them.
const VERSION: u32 = 3;

/// How long one waits for another that writes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why the index begins empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    /// There was none.
    New,
    /// It was of another version.
    OtherVersion,
    /// It was damaged; this is where it is now.
    Damaged(PathBuf),
}

impl Index {
    /// Opens the index in a folder, or makes one. `name` tells clusters apart.
    pub fn open(folder: &Path, name: &str) -> Result<(Self, Option<Rebuilt>), Error> {
        fs::create_dir_all(folder).map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        let path = folder.join(format!("letters-{}.db", plain(name)));
        let is_new = !path.exists();
        match Self::at(&path) {
            Ok((index, true)) => Ok((index, is_new.then_some(Rebuilt::New))),
            Ok((index, false)) => {
                drop(index);
                remove(&path)?;
                let (index, _) = Self::at(&path)?;
                Ok((index, Some(Rebuilt::OtherVersion)))
            }
            Err(error) if error.is_damage() => {
                let aside = Self::set_aside(&path)?;
                let (index, _) = Self::at(&path)?;
                Ok((index, Some(Rebuilt::Damaged(aside))))
            }
            Err(error) => Err(error),
        }
    }

    /// Moves a damaged file out of the way; where it is now.
    pub fn set_aside(path: &Path) -> Result<PathBuf, Error> {
        let folder = |source| Error::Folder { path: path.to_owned(), source };
        let aside = path.with_extension("db.damaged");
        fs::rename(path, &aside).map_err(folder)?;
        remove(path)?;
        Ok(aside)
    }

    /// Opens the file; false if it is of another version.
    fn at(path: &Path) -> Result<(Self, bool), Error> {
        let opened = (|| {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(128);
            // What is deleted gives its space back, a part at a time.
            connection.execute_batch(
                "PRAGMA page_size = 8192; PRAGMA auto_vacuum = incremental; PRAGMA journal_mode = wal;",
            )?;
            connection.execute_batch(
                "PRAGMA synchronous = normal; PRAGMA cache_size = -131072; PRAGMA temp_store = memory;
                 PRAGMA mmap_size = 1073741824; PRAGMA wal_autocheckpoint = 16384;
                 PRAGMA journal_size_limit = 67108864;",
            )?;
            let is_known = version(&connection)?;
            Ok((connection, is_known))
        })();
        let (connection, is_known) =
            opened.map_err(|source| Error::Index { deed: "open", path: path.to_owned(), source })?;
        let path = path.to_owned();
        Ok((
            Self { path, connection, memory: Memory::default(), kinds: Kinds::default(), about: None },
            is_known,
        ))
    }
}

/// Whether it is of this version; an empty one is made so.
fn version(connection: &Connection) -> rusqlite::Result<bool> {
    // Two that find it empty must not both make it.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let ours = VERSION * 1_000 + fingerprint::VERSION;
    let tables: u32 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found == 0 && tables == 0 {
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(&format!("PRAGMA user_version = {ours}"))?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(found == ours || (found == 0 && tables == 0))
}

fn remove(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.to_owned().into_os_string();
        file.push(suffix);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Folder { path: file.into(), source: error });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// A name that any file system takes.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    name.chars().take(80).map(plain).collect()
}
