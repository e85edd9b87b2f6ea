//! The root directory: made, locked, and refused when it is another program's.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The embedded store's file below the root directory.
pub const STORE_FILE: &str = "ferroplane.db";
const LOCK_FILE: &str = "ferroplane.lock";

/// Every message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("use root directory {path} ({})", advice(source))]
    Directory { path: PathBuf, source: std::io::Error },
    #[error(
        "root directory {path} is in use by process {pid}; stop it, or give another --root-directory"
    )]
    InUse { path: PathBuf, pid: String },
    #[error(
        "root directory {path} holds the data of a Go kcp (etcd-server/) and nothing of ours; \
         to keep that data, run kcp on a kine SQLite file and start with --etcd-servers=sqlite://<file>; \
         to begin afresh, give another --root-directory"
    )]
    GoKcp { path: PathBuf },
    #[error("write {path} ({})", advice(source))]
    Write { path: PathBuf, source: std::io::Error },
}

/// What to do about a directory or file that cannot be written.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or give another directory with --root-directory"
        }
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f)",
        ErrorKind::PermissionDenied => {
            "make it writable for this user, or give another directory with --root-directory"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "mount it writable, or give another directory with --root-directory"
        }
        _ => "give a directory that you can write, with --root-directory",
    }
}

/// A root directory that this process holds. Dropping it lets go.
pub struct RootDir {
    path: PathBuf,
    _lock: File,
}

impl RootDir {
    /// Makes the directory (0700) when it is not there, and takes its lock.
    pub fn open(path: &Path, store_in_root: bool) -> Result<Self, Error> {
        let fail = |source| Error::Directory { path: path.to_owned(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
        let path = path.canonicalize().map_err(fail)?;
        if store_in_root && path.join("etcd-server").exists() && !path.join(STORE_FILE).exists() {
            return Err(Error::GoKcp { path });
        }
        let lock = lock(&path)?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn store_file(&self) -> PathBuf {
        self.path.join(STORE_FILE)
    }
}

fn lock(root: &Path) -> Result<File, Error> {
    let path = root.join(LOCK_FILE);
    let fail = |source| Error::Directory { path: root.to_owned(), source };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(fail)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut pid = String::new();
        let _ = file.read_to_string(&mut pid);
        return Err(Error::InUse { path: root.to_owned(), pid: pid.trim().to_owned() });
    }
    file.set_len(0).map_err(fail)?;
    file.rewind().map_err(fail)?;
    writeln!(file, "{}", std::process::id()).map_err(fail)?;
    Ok(file)
}

/// Writes a file so that a reader sees the old content or the new, never a part, and power loss
/// does not undo it.
pub fn write_atomically(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let fail = |source| Error::Write { path: path.to_owned(), source };
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .ok_or_else(|| fail(ErrorKind::InvalidInput.into()))?;
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = dir.join(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        fail(e)
    })
}

/// The content, or `None` when there is no such file.
pub fn read_if_there(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_the_pid() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("a/b");
        let held = RootDir::open(&root, true).unwrap();
        let error = RootDir::open(&root, true).err().unwrap().to_string();
        assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
        drop(held);
        RootDir::open(&root, true).unwrap();
    }

    #[test]
    fn go_kcp_data_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etcd-server")).unwrap();
        assert!(matches!(RootDir::open(dir.path(), true), Err(Error::GoKcp { .. })));
        RootDir::open(dir.path(), false).unwrap();
        std::fs::write(dir.path().join(STORE_FILE), "").unwrap();
        RootDir::open(dir.path(), true).unwrap();
    }

    #[test]
    fn files_are_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write_atomically(&path, b"one", 0o600).unwrap();
        write_atomically(&path, b"two", 0o600).unwrap();
        assert_eq!(read_if_there(&path).unwrap().unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(read_if_there(&dir.path().join("y")).unwrap(), None);
    }
}
