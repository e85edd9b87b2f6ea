//! watch: a registry's changes as the events of one request.
//!
//! Invariants: a bookmark names a revision only when everything up to it has been handed out; an
//! object that leaves the selection is DELETED, one that enters is ADDED (apiserver's
//! `storage/cacher/cache_watcher.go`).

use std::sync::Arc;
use std::time::Duration;

use fp_base::Revision;
use fp_informer::Entry;
use fp_object::status::Status;
use fp_registry::{Change, ChangeKind, Error, Freshness, ListQuery, Step, Watch, WatchFrom};
use fp_schema::ResourceInfo;
use tokio::time::Instant;

use crate::options::ListOptions;
use crate::request::{Query, Response, View, WatchAnswer, WatchEvent, WatchEvents};
use crate::select::Selection;
use crate::status::{from_registry, too_new, watch_expired};
use crate::target::{Target, mixed_view};
use crate::view;

/// How often a watch that allows it gets a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A watch that names no `timeoutSeconds` ends after this long, up to twice as long
/// (`--min-request-timeout`).
const TIMEOUT_LEAST: Duration = Duration::from_secs(1800);

pub async fn watch(target: Target<'_>, query: &Query) -> Result<Response, Status> {
    let options = ListOptions::parse(query, true)?;
    let selection = Selection::parse(target.info, target.version, options.labels, options.fields)?;
    let gone = target.surface.directory.ends(target.scope, &target.info.gr);
    let begun = begin(selection.narrow(target), &options).await;
    let source = match begun {
        Ok(watch) => Source::Running(watch),
        // Once a request is well-formed and allowed, what fails is an ERROR event: clients expect
        // it in the stream, whether it happens at the start or later.
        Err(status) => Source::Failed(Some(status)),
    };
    let now = Instant::now();
    let timeout = options.timeout_secs.map_or_else(timeout, Duration::from_secs);
    let events = Stream {
        source,
        asked: options.revision.unwrap_or_default(),
        info: target.info.clone(),
        version: target.version.name.clone(),
        mixed: target.mixed,
        selection,
        bookmarks: options.bookmarks,
        initial: options.initial_events == Some(true),
        next_bookmark: now + BOOKMARK_EVERY,
        deadline: now + timeout,
        gone,
    };
    Ok(Response::Watch(WatchAnswer {
        info: target.info.clone(),
        version: target.version.name.clone(),
        events: Box::new(events),
    }))
}

/// Spread out, so that watches that began together do not end together.
fn timeout() -> Duration {
    let mut byte = [0u8; 1];
    // Without randomness they end together, which is no error.
    let _ = getrandom::fill(&mut byte);
    TIMEOUT_LEAST + TIMEOUT_LEAST * u32::from(byte[0]) / 256
}

async fn begin(target: Target<'_>, options: &ListOptions<'_>) -> Result<Box<dyn Watch>, Status> {
    let backend = &target.surface.backend;
    let failed = |e: Error| match e {
        Error::Compacted { asked, oldest } => watch_expired(asked.0, oldest.0),
        Error::TooNew { asked, newest } => too_new(asked.0, newest.0),
        other => from_registry(&other, target.about()),
    };
    let from = match (options.initial_events, options.revision) {
        (Some(true), None) => WatchFrom::Start { fresh: true },
        (Some(true), Some(Revision::ZERO)) => WatchFrom::Start { fresh: false },
        (Some(true), Some(at)) => {
            head(target, Freshness::AtLeast(at)).await.map_err(failed)?;
            WatchFrom::Start { fresh: false }
        }
        (_, None) => WatchFrom::After(head(target, Freshness::Newest).await.map_err(failed)?),
        (_, Some(Revision::ZERO)) => {
            WatchFrom::After(head(target, Freshness::Any).await.map_err(failed)?)
        }
        (_, Some(at)) => WatchFrom::After(at),
    };
    backend.watch(target.place(), from).await.map_err(failed)
}

/// The revision of a read that is at least this fresh.
async fn head(target: Target<'_>, freshness: Freshness) -> Result<Revision, Error> {
    let none = |_: &Entry| false;
    let query = ListQuery { freshness, start_after: None, limit: 1, filter: Some(&none) };
    Ok(target.surface.backend.list(target.place(), query).await?.revision)
}

enum Source {
    Running(Box<dyn Watch>),
    /// The error to hand out; `None` when that is done.
    Failed(Option<Status>),
}

struct Stream {
    source: Source,
    asked: Revision,
    info: Arc<ResourceInfo>,
    version: Arc<str>,
    mixed: bool,
    selection: Selection,
    bookmarks: bool,
    /// The initial objects are not complete yet.
    initial: bool,
    next_bookmark: Instant,
    deadline: Instant,
    gone: Option<tokio::sync::watch::Receiver<bool>>,
}

/// Why a wait ended.
enum Woken {
    Steps(Result<Vec<Step>, Error>),
    Bookmark,
    Over,
}

#[async_trait::async_trait]
impl WatchEvents for Stream {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            let woken = match &mut self.source {
                Source::Failed(status) => return status.take().map(|s| vec![WatchEvent::Error(s)]),
                Source::Running(watch) => {
                    let wake_at = if self.bookmarks {
                        self.next_bookmark.min(self.deadline)
                    } else {
                        self.deadline
                    };
                    tokio::select! {
                        biased;
                        () = gone(&mut self.gone) => Woken::Over,
                        steps = watch.next() => Woken::Steps(steps),
                        () = tokio::time::sleep_until(wake_at) => {
                            if Instant::now() >= self.deadline { Woken::Over } else { Woken::Bookmark }
                        }
                    }
                }
            };
            let events = match woken {
                Woken::Steps(Ok(steps)) => self.events(steps),
                Woken::Steps(Err(error)) => {
                    self.source = Source::Failed(None);
                    vec![WatchEvent::Error(self.status(&error))]
                }
                Woken::Bookmark => self.bookmark().into_iter().collect(),
                Woken::Over => {
                    let last: Vec<WatchEvent> = self.bookmark().into_iter().collect();
                    self.source = Source::Failed(None);
                    last
                }
            };
            if !events.is_empty() {
                return Some(events);
            }
        }
    }

    /// A bookmark, if the watch wants one; none before the initial objects are complete.
    fn bookmark(&mut self) -> Option<WatchEvent> {
        self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
        let Source::Running(watch) = &mut self.source else { return None };
        if !self.bookmarks || self.initial {
            return None;
        }
        let revision = watch.progress();
        self.asked = self.asked.max(revision);
        (revision > Revision::ZERO)
            .then_some(WatchEvent::Bookmark { revision, initial_events_end: false })
    }
}

/// Ends when the directory says so; never, when it has nothing to say.
async fn gone(receiver: &mut Option<tokio::sync::watch::Receiver<bool>>) {
    if let Some(receiver) = receiver
        && receiver.wait_for(|gone| *gone).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

impl Stream {
    fn status(&self, error: &Error) -> Status {
        match error {
            Error::Compacted { oldest, .. } => watch_expired(self.asked.0, oldest.0),
            Error::TooNew { asked, newest } => too_new(asked.0, newest.0),
            other => from_registry(other, crate::status::about(&self.info, "")),
        }
    }

    fn events(&mut self, steps: Vec<Step>) -> Vec<WatchEvent> {
        let mut events = Vec::with_capacity(steps.len());
        for step in steps {
            match step {
                Step::Change(change) => {
                    self.asked = self.asked.max(change.entry.revision);
                    match self.event(&change) {
                        Ok(event) => events.extend(event),
                        Err(status) => {
                            self.source = Source::Failed(None);
                            events.push(WatchEvent::Error(status));
                            return events;
                        }
                    }
                }
                Step::Bookmark(revision) => self.asked = self.asked.max(revision),
                Step::Synced(revision) => {
                    self.asked = self.asked.max(revision);
                    if std::mem::take(&mut self.initial) && self.bookmarks {
                        events.push(WatchEvent::Bookmark { revision, initial_events_end: true });
                    }
                }
            }
        }
        events
    }

    fn event(&self, change: &Change) -> Result<Option<WatchEvent>, Status> {
        let selects = |entry: &Entry| self.selection.is_empty() || self.selection.matches(entry);
        let was = match (&change.old, change.kind) {
            (_, ChangeKind::Deleted) => selects(&change.entry),
            (Some(old), _) => selects(old),
            (None, ChangeKind::Modified) => selects(&change.entry),
            (None, ChangeKind::Added) => false,
        };
        let is = change.kind != ChangeKind::Deleted && selects(&change.entry);
        Ok(match (was, is) {
            (false, false) => None,
            (false, true) => Some(WatchEvent::Added(self.view(change.entry.clone())?)),
            (true, true) => Some(WatchEvent::Modified(self.view(change.entry.clone())?)),
            (true, false) if change.kind == ChangeKind::Deleted => {
                Some(WatchEvent::Deleted(self.view(change.entry.clone())?))
            }
            // It left the selection: its last selected state, at the revision of the change.
            (true, false) => {
                let old = change.old.as_ref().expect("it was selected, so there was one");
                let version = self.version();
                let object = view::in_version(&self.info, version, old)?;
                let object = view::with_revision(object, change.entry.revision);
                Some(WatchEvent::Deleted(view::of_object(&self.info, version, object)))
            }
        })
    }

    fn version(&self) -> &fp_schema::VersionInfo {
        self.info.version(&self.version).unwrap_or_else(|| self.info.storage_version())
    }

    fn view(&self, entry: Arc<Entry>) -> Result<View, Status> {
        if self.mixed {
            return Ok(mixed_view(&self.info, self.version(), &entry));
        }
        view::of_entry(&self.info, self.version(), entry)
    }
}
