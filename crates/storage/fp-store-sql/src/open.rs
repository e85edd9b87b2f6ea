//! Opening the file: the lock, the checks, the pragmas; and one line for each thing in the way.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fp_base::Revision;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::lock::{FileLock, LockError};
use crate::rows;
use crate::schema::{self, Unfit};

/// Before 3.51.3 a WAL reset beside a second connection could corrupt the file.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// How long a connection waits for another program (kine, a backup) to let go of the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// After a checkpoint a longer WAL file is cut to this.
const WAL_BYTES_KEPT: u32 = 64 << 20;
/// Page caches, in KiB. Reads come in pages of a list, which a cache does not help.
const WRITER_CACHE_KIB: u32 = 8 << 10;
const READER_CACHE_KIB: u32 = 1 << 10;

/// Why the store did not open, and what to do about it. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is in use by {}: stop it or use another root directory", path.display(), holder(*pid))]
    Locked { path: PathBuf, pid: Option<u32> },
    #[error("{} is busy: another program holds a lock on it; stop kine or the backup", path.display())]
    Busy { path: PathBuf },
    #[error("{} is not a kine database: move it away or name another file", path.display())]
    Foreign { path: PathBuf },
    #[error("{} has a kine table of an unknown layout ({what}): use the kine that made it", path.display())]
    Schema { path: PathBuf, what: String },
    #[error("{} is damaged: restore it from a backup, or repair it with `sqlite3 .recover`", path.display())]
    Damaged { path: PathBuf },
    #[error("no permission for {}: make it and its folder readable and writable for this user", path.display())]
    Permission { path: PathBuf },
    #[error("{} is on a read-only file system: mount it writable or use another directory", path.display())]
    ReadOnly { path: PathBuf },
    #[error("no space left for {}: free some and start again", path.display())]
    Full { path: PathBuf },
    #[error("the folder of {} does not exist: create it", path.display())]
    NoFolder { path: PathBuf },
    #[error("SQLite {found} can damage files: build with 3.51.3 or later")]
    Version { found: &'static str },
    #[error("open {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("open {} as a database", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or("another process".into(), |pid| format!("process {pid}"))
}

pub(crate) struct Opened {
    pub(crate) head: Revision,
    pub(crate) writing: Writing,
    pub(crate) readers: Vec<Connection>,
}

/// What the writer's thread owns. The lock goes last.
pub(crate) struct Writing {
    pub(crate) conn: Connection,
    pub(crate) lock: FileLock,
}

pub(crate) fn open(path: &Path, n_readers: usize) -> Result<Opened, OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::Version { found: rusqlite::version() });
    }
    let lock = FileLock::take(path).map_err(|e| match e {
        LockError::Held { pid } => OpenError::Locked { path: path.to_owned(), pid },
        LockError::Io(source) => io_error(path, source),
    })?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(|source| io_error(path, source))?;

    let sqlite = |e| sqlite_error(path, e);
    let conn = open_writer(path).map_err(sqlite)?;
    // First of all: a foreign file must not even be switched to WAL.
    schema::check(&conn).map_err(|e| match e {
        Unfit::Foreign => OpenError::Foreign { path: path.to_owned() },
        Unfit::Unknown(what) => OpenError::Schema { path: path.to_owned(), what },
        Unfit::Sqlite(e) => sqlite(e),
    })?;
    set_up_writer(&conn).and_then(|()| schema::prepare(&conn)).map_err(sqlite)?;
    let head = rows::head(&conn).map_err(sqlite)?;
    let readers = (0..n_readers.max(1)).map(|_| open_reader(path)).collect::<Result<_, _>>();
    Ok(Opened { head, writing: Writing { conn, lock }, readers: readers.map_err(sqlite)? })
}

fn open_writer(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    Ok(conn)
}

fn set_up_writer(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "cache_size", -i64::from(WRITER_CACHE_KIB))?;
    // The writer checkpoints itself, because SQLite's own way swallows the error of a failed sync.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", WAL_BYTES_KEPT, |_| Ok(()))?;
    Ok(())
}

pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.pragma_update(None, "cache_size", -i64::from(READER_CACHE_KIB))?;
    Ok(conn)
}

fn io_error(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => OpenError::Permission { path },
        io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { path },
        io::ErrorKind::NotFound => OpenError::NoFolder { path },
        _ => OpenError::Io { path, source },
    }
}

pub(crate) fn sqlite_error(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    // The index of the WAL gets its pages when the file is opened.
    if source.sqlite_error().is_some_and(|e| e.extended_code == SQLITE_IOERR_SHMSIZE) {
        return OpenError::Full { path };
    }
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Foreign { path },
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path },
        Some(ErrorCode::DiskFull) => OpenError::Full { path },
        Some(ErrorCode::ReadOnly) => OpenError::ReadOnly { path },
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => OpenError::Permission { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy { path },
        _ => OpenError::Sqlite { path, source },
    }
}
