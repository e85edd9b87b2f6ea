//! The lock file beside the database: one process owns the file, and a second learns whose it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Held for as long as the store is open. The kernel lets go of it when the process ends, however
/// it ends; the file itself stays, because removing it would race with the next holder.
pub(crate) struct FileLock {
    _file: File,
}

pub(crate) enum LockError {
    /// The holder's process id, as far as it could be read.
    Held {
        pid: Option<u32>,
    },
    Io(io::Error),
}

pub(crate) fn lock_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

impl FileLock {
    pub(crate) fn take(database: &Path) -> Result<Self, LockError> {
        let path = lock_path(database);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(LockError::Io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                write_pid(&mut file).map_err(LockError::Io)?;
                Ok(Self { _file: file })
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LockError::Held { pid: read_pid(&mut file) }),
            Err(errno) => Err(LockError::Io(errno.into())),
        }
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    const PID_BYTES_MAX: u64 = 16;
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
