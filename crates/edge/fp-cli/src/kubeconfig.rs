//! Kubeconfig files: several read as one, edits written back to the file that an entry came from.
//!
//! Invariants: the first file that sets a value or defines an entry wins; an edit changes only what it names, so
//! unknown fields and other entries survive; a reader never sees a half-written file.
//! Source of the rules: client-go `tools/clientcmd` (`loader.go`, `config.go`).
//! Deliberately absent: what the entries mean (see `connect`).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fp_object::yaml;
use serde_json::{Map, Value, json};

/// How often and how long to wait for another program that holds a file's lock.
const LOCK_TRIES_MAX: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The fields of an entry, known ones and others.
pub type Fields = Map<String, Value>;

/// One of the lists of a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Clusters,
    Contexts,
    Users,
}

impl Section {
    fn list(self) -> &'static str {
        match self {
            Section::Clusters => "clusters",
            Section::Contexts => "contexts",
            Section::Users => "users",
        }
    }

    fn body(self) -> &'static str {
        match self {
            Section::Clusters => "cluster",
            Section::Contexts => "context",
            Section::Users => "user",
        }
    }
}

/// An entry and the file that it came from.
#[derive(Clone, Debug)]
pub struct Entry {
    pub fields: Fields,
    pub origin: PathBuf,
}

impl Entry {
    /// A field's text, empty if absent. Plain numbers and booleans count as text, as in client-go's YAML reader.
    pub fn text(&self, field: &str) -> String {
        scalar_text(self.fields.get(field))
    }

    pub fn on(&self, field: &str) -> bool {
        self.fields.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A copy with one field replaced.
    pub fn with(&self, field: &str, value: &str) -> Self {
        let mut copy = self.clone();
        copy.fields.insert(field.to_owned(), Value::from(value));
        copy
    }

    /// The path in a field, which is relative to the entry's file.
    pub fn path(&self, field: &str) -> Option<PathBuf> {
        let text = self.text(field);
        (!text.is_empty()).then(|| self.dir().join(text))
    }

    fn dir(&self) -> &Path {
        self.origin.parent().unwrap_or(Path::new(""))
    }
}

fn scalar_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(on)) => on.to_string(),
        _ => String::new(),
    }
}

/// Why a kubeconfig cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("stat {}: no such file or directory", .0.display())]
    Missing(PathBuf),
    #[error("error loading config file \"{}\": {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("error loading config file \"{}\": {reason}", .path.display())]
    Content { path: PathBuf, reason: String },
    #[error("write config file \"{}\": {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("config file \"{}\" is locked by another program; remove \"{}\" if none runs", .path.display(), .lock.display())]
    Locked { path: PathBuf, lock: PathBuf },
}

/// Changes to make in one go.
#[derive(Debug, Default)]
pub struct Edit {
    /// Entries to add or replace; `origin` says which file a new one belongs to.
    pub entries: Vec<(Section, String, Entry)>,
    pub current_context: Option<String>,
}

/// All kubeconfig files of one call, in order of precedence.
#[derive(Debug)]
pub struct Kubeconfig {
    sources: Vec<(PathBuf, Option<Value>)>,
}

impl Kubeconfig {
    /// Loads the file of `--kubeconfig`, else those of `KUBECONFIG`, else `<home>/.kube/config`.
    /// Only an explicit file must exist.
    pub fn load(
        explicit: Option<&str>,
        variable: Option<&OsStr>,
        home: Option<&Path>,
    ) -> Result<Self, Error> {
        let mut paths: Vec<PathBuf> = match (explicit, variable.filter(|v| !v.is_empty())) {
            (Some(path), _) => vec![path.into()],
            (None, Some(list)) => {
                std::env::split_paths(list).filter(|p| !p.as_os_str().is_empty()).collect()
            }
            (None, None) => home.map(|h| h.join(".kube/config")).into_iter().collect(),
        };
        let mut seen = Vec::new();
        paths.retain(|p| {
            !seen.contains(p) && {
                seen.push(p.clone());
                true
            }
        });
        let mut sources = Vec::with_capacity(paths.len());
        for path in paths {
            let document = read(&path)?;
            if document.is_none() && explicit.is_some() {
                return Err(Error::Missing(path));
            }
            sources.push((path, document));
        }
        Ok(Self { sources })
    }

    /// The name of the current context, empty if none is set.
    pub fn current_context(&self) -> String {
        self.documents()
            .map(|(_, d)| scalar_text(d.get("current-context")))
            .find(|c| !c.is_empty())
            .unwrap_or_default()
    }

    /// The entry of a name, from the first file that has it.
    pub fn entry(&self, section: Section, name: &str) -> Option<Entry> {
        self.documents().find_map(|(path, document)| {
            let item =
                items(document, section).find(|item| scalar_text(item.get("name")) == name)?;
            let fields =
                item.get(section.body()).and_then(Value::as_object).cloned().unwrap_or_default();
            Some(Entry { fields, origin: path.to_owned() })
        })
    }

    /// Writes an edit. Each file is locked, read again and replaced as a whole; the file with the current context
    /// is the last, so that it never names an entry that is not there yet.
    pub fn commit(&self, edit: &Edit) -> Result<(), Error> {
        let default = self.default_file();
        let mut files: BTreeMap<PathBuf, Vec<(Section, &str, &Entry)>> = BTreeMap::new();
        for (section, name, entry) in &edit.entries {
            let file = match self.entry(*section, name) {
                Some(existing) => existing.origin,
                None => entry.origin.clone(),
            };
            files.entry(file).or_default().push((*section, name, entry));
        }
        let current = edit.current_context.as_deref().filter(|c| *c != self.current_context());
        let with_current = files.remove(&default).unwrap_or_default();
        for (file, entries) in &files {
            rewrite(file, entries, None)?;
        }
        if current.is_some() || !with_current.is_empty() {
            rewrite(&default, &with_current, current)?;
        }
        Ok(())
    }

    fn documents(&self) -> impl Iterator<Item = (&Path, &Value)> {
        self.sources
            .iter()
            .filter_map(|(path, document)| Some((path.as_path(), document.as_ref()?)))
    }

    /// Where the current context is written: the first file that exists, else the first.
    fn default_file(&self) -> PathBuf {
        let existing = self.sources.iter().find(|(_, d)| d.is_some()).or(self.sources.first());
        existing.map(|(path, _)| path.clone()).unwrap_or_default()
    }
}

fn items(document: &Value, section: Section) -> impl Iterator<Item = &Value> {
    document.get(section.list()).and_then(Value::as_array).into_iter().flatten()
}

/// Reads a file; `None` if it does not exist, an empty mapping if it is empty.
fn read(path: &Path) -> Result<Option<Value>, Error> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
    };
    let content = |reason: String| Error::Content { path: path.to_owned(), reason };
    if text.trim_ascii().is_empty() {
        return Ok(Some(json!({})));
    }
    let (document, twice) = yaml::decode_value(&text).map_err(|e| content(e.to_string()))?;
    if let Some(twice) = twice.into_iter().next() {
        return Err(content(twice));
    }
    match document {
        Value::Null => Ok(Some(json!({}))),
        Value::Object(_) => {
            for section in [Section::Clusters, Section::Contexts, Section::Users] {
                let list = document.get(section.list()).unwrap_or(&Value::Null);
                if !(list.is_null()
                    || list.as_array().is_some_and(|l| l.iter().all(Value::is_object)))
                {
                    return Err(content(format!("{} is not a list of mappings", section.list())));
                }
            }
            Ok(Some(document))
        }
        _ => Err(content("not a mapping".to_owned())),
    }
}

/// Applies changes to one file under its lock.
fn rewrite(
    path: &Path,
    entries: &[(Section, &str, &Entry)],
    current: Option<&str>,
) -> Result<(), Error> {
    // A link stays a link: the file that it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let fail = |source: io::Error| Error::Write { path: path.to_owned(), source };
    if let Some(dir) = target.parent().filter(|d| !d.as_os_str().is_empty()) {
        fs::create_dir_all(dir).map_err(fail)?;
    }
    let _lock = Lock::take(path)?;
    let mut document = match read(&target)? {
        Some(Value::Object(document)) => document,
        _ => Map::new(),
    };
    document.entry("apiVersion").or_insert_with(|| "v1".into());
    document.entry("kind").or_insert_with(|| "Config".into());
    for (section, name, entry) in entries {
        put(&mut document, *section, name, entry, path);
    }
    if let Some(current) = current {
        document.insert("current-context".to_owned(), current.into());
    }
    let text = yaml::to_string(&Value::Object(document));
    replace(&target, text.as_bytes()).map_err(fail)
}

/// Adds or replaces an entry, leaving the item's other keys as they are.
fn put(document: &mut Fields, section: Section, name: &str, entry: &Entry, file: &Path) {
    let mut fields = entry.fields.clone();
    if entry.dir() != file.parent().unwrap_or(Path::new("")) {
        // The path was relative to the file that the entry was copied from.
        if let Some(ca) = entry.path("certificate-authority") {
            let absolute = std::path::absolute(&ca).unwrap_or(ca);
            fields.insert("certificate-authority".to_owned(), absolute.to_string_lossy().into());
        }
    }
    let list = document.entry(section.list()).or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("made a list above");
    match list.iter_mut().find(|item| scalar_text(item.get("name")) == name) {
        Some(item) => item[section.body()] = Value::Object(fields),
        None => list.push(json!({ "name": name, section.body(): fields })),
    }
}

/// Writes a file readable by its owner only, and swaps it in.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// client-go's lock of a kubeconfig: `<file>.lock` exists while someone writes.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Self, Error> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        for _ in 0..LOCK_TRIES_MAX {
            match File::create_new(&lock) {
                Ok(_) => return Ok(Self(lock)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    thread::sleep(LOCK_PAUSE)
                }
                Err(source) => return Err(Error::Write { path: path.to_owned(), source }),
            }
        }
        Err(Error::Locked { path: path.to_owned(), lock })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nothing to do if it fails: the next writer names the file to remove.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
#[path = "kubeconfig_tests.rs"]
mod tests;
