//! The file of a backup, which has its name only when it is whole and on the disk.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 << 10;

/// Written beside its name; removed when it is dropped before [`BackupFile::keep`].
pub struct BackupFile {
    out: BufWriter<File>,
    partial: Option<PathBuf>,
    path: PathBuf,
}

impl BackupFile {
    /// A name that is taken is refused.
    pub fn create(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(Error::new(ErrorKind::AlreadyExists, "it exists: name another file"));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = PathBuf::from(partial);
        // What is in there are secrets.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { out, partial: Some(partial), path: path.to_owned() })
    }

    /// Makes it durable and gives it its name.
    pub fn keep(mut self) -> Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        let partial = self.partial.as_ref().expect("it is taken only here, once");
        // A link never replaces what came there meanwhile; a rename would.
        std::fs::hard_link(partial, &self.path)?;
        std::fs::remove_file(partial)?;
        self.partial = None;
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for BackupFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }
}

impl Drop for BackupFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Nothing can be done about one that stays; its name says what it is.
            let _ = std::fs::remove_file(partial);
        }
    }
}
