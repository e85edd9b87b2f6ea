//! One stream of watches.
//!
//! A task per watch turns the store's batches into events; the stream's own task sends them, so
//! that what it knows a watch's progress to be has been sent before. A progress request is answered
//! once every watch of the stream has been told everything up to the revision that was the newest
//! when it was asked: the answer is in order with the events (as etcd does since 3.4.25).
//!
//! Invariants: what waits for a slow client is bounded by two queues, and a watch that waits reads
//! on from the store's log; a response with events never ends inside a transaction, unless the
//! client asked for fragments.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Error, EventKind, Row, Store, Watcher};
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::bounds::Bounds;
use crate::compact_key::key_value;
use crate::grpc::{MESSAGE_BYTES_MAX, Messages, Sink, frame};
use crate::proto::{
    self, EventType, FilterType, KeyValue, WatchCreateRequest, WatchKind, WatchRequest,
    WatchResponse,
};
use crate::status::{self, Status};
use crate::{Stopped, header};

/// Watches of one stream.
const WATCHES_MAX: usize = 20_000;
/// Batches of all watches of a stream that wait to be sent.
const BATCHES_MAX: usize = 8;
/// Progress requests that wait; more are answered together.
const REQUESTS_MAX: usize = 16;
/// The watch that answers are for which concern all, or none.
const NO_WATCH: i64 = -1;

pub struct Stream {
    pub store: Arc<dyn Store>,
    pub messages: Messages,
    pub sink: Sink,
    pub stopped: watch::Receiver<Stopped>,
    pub progress_interval: Duration,
}

struct Watch {
    task: JoinHandle<()>,
    /// Everything up to here has been sent.
    progress: Revision,
    progress_notify: bool,
    fragment: bool,
    /// Since the last round of progress notifications.
    heard: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum Item {
    Events { id: i64, events: Vec<proto::Event>, progress: Revision },
    Ended { id: i64, error: Error },
}

/// The watches of a stream, and what is asked of all of them.
#[derive(Default)]
struct Watches {
    by_id: BTreeMap<i64, Watch>,
    next_id: i64,
    /// The revisions at which progress was asked for, oldest first.
    asked: VecDeque<Revision>,
}

/// The client is gone.
struct Gone;

impl Stream {
    /// Serves until the client ends it, the server stops, or a message is none.
    pub async fn run(mut self) {
        let ended = self.serve().await;
        if let Ok(Some(status)) = ended {
            // Nobody may be there to hear it.
            let _ = self.sink.send(Err(status)).await;
        }
    }

    async fn serve(&mut self) -> Result<Option<Status>, Gone> {
        let (items, mut batches) = mpsc::channel(BATCHES_MAX);
        let mut watches = Watches::default();
        let mut rounds = tokio::time::interval(self.progress_interval);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        rounds.reset();
        loop {
            tokio::select! {
                _ = self.stopped.changed() => return Ok(Some(status::STOPPED)),
                () = self.sink.closed() => return Err(Gone),
                message = self.messages.next::<WatchRequest>() => match message {
                    Ok(Some(WatchRequest { kind })) => {
                        if let Some(status) = self.asked(kind, &mut watches, &items).await? {
                            return Ok(Some(status));
                        }
                    }
                    Ok(None) => return Ok(None),
                    Err(status) => return Ok(Some(status)),
                },
                Some(item) = batches.recv() => {
                    self.item(item, &mut watches).await?;
                    self.answer_progress(&mut watches).await?;
                }
                _ = rounds.tick() => self.notify(&mut watches).await?,
            }
        }
    }

    async fn asked(
        &mut self,
        kind: Option<WatchKind>,
        watches: &mut Watches,
        items: &mpsc::Sender<Item>,
    ) -> Result<Option<Status>, Gone> {
        match kind {
            Some(WatchKind::Create(request)) => {
                let head = match self.store.head().await {
                    Ok(head) => head,
                    Err(error) => return Ok(Some(error.into())),
                };
                self.create(request, head, watches, items).await?;
            }
            Some(WatchKind::Cancel(request)) => {
                if let Some(watch) = watches.by_id.remove(&request.watch_id) {
                    let (watch_id, canceled) = (request.watch_id, true);
                    let response = WatchResponse { watch_id, canceled, ..Default::default() };
                    self.send(watch.progress, response).await?;
                    self.answer_progress(watches).await?;
                }
            }
            Some(WatchKind::Progress(_)) => {
                let head = match self.store.head().await {
                    Ok(head) => head,
                    Err(error) => return Ok(Some(error.into())),
                };
                if watches.asked.len() == REQUESTS_MAX {
                    watches.asked.pop_back();
                }
                watches.asked.push_back(head);
                self.answer_progress(watches).await?;
            }
            None => {}
        }
        Ok(None)
    }

    async fn create(
        &mut self,
        request: WatchCreateRequest,
        head: Revision,
        watches: &mut Watches,
        items: &mpsc::Sender<Item>,
    ) -> Result<(), Gone> {
        let accepted = watches.id(request.watch_id).and_then(|id| {
            // As in etcd, a watch without a key is one of every key from the first on.
            let key = if request.key.is_empty() {
                Bytes::from_static(b"\0")
            } else {
                request.key.clone()
            };
            match Bounds::new(&key, &request.range_end) {
                Ok(bounds) if !bounds.is_empty() => Ok((id, bounds)),
                _ => Err("mvcc: watcher range is empty".to_owned()),
            }
        });
        let (id, bounds) = match accepted {
            Ok(accepted) => accepted,
            Err(cancel_reason) => {
                let refused = WatchResponse {
                    watch_id: NO_WATCH,
                    created: true,
                    canceled: true,
                    cancel_reason,
                    ..Default::default()
                };
                return self.send(head, refused).await;
            }
        };
        let created = WatchResponse { watch_id: id, created: true, ..Default::default() };
        self.send(head, created).await?;
        let from =
            if request.start_revision > 0 { Revision(request.start_revision) } else { head.next() };
        let watcher = match self.store.watch(bounds.prefix(), from).await {
            Ok(watcher) => watcher,
            Err(error) => return self.cancel(id, head, error).await,
        };
        let filter = Filter {
            bounds,
            puts: !request.filters.contains(&(FilterType::NoPut as i32)),
            deletes: !request.filters.contains(&(FilterType::NoDelete as i32)),
            prev_kv: request.prev_kv,
        };
        let task = tokio::spawn(follow(id, watcher, filter, items.clone()));
        let progress = Revision(from.0 - 1);
        let (progress_notify, fragment) = (request.progress_notify, request.fragment);
        let watch = Watch { task, progress, progress_notify, fragment, heard: true };
        watches.by_id.insert(id, watch);
        Ok(())
    }

    async fn item(&mut self, item: Item, watches: &mut Watches) -> Result<(), Gone> {
        match item {
            Item::Events { id, events, progress } => {
                // Canceled while this waited.
                let Some(watch) = watches.by_id.get_mut(&id) else { return Ok(()) };
                watch.progress = progress;
                if events.is_empty() {
                    return Ok(());
                }
                watch.heard = true;
                let parts = match watch.fragment {
                    true => fragments(events),
                    false => vec![events],
                };
                let n_parts = parts.len();
                for (n, events) in parts.into_iter().enumerate() {
                    let fragment = n + 1 < n_parts;
                    let response =
                        WatchResponse { watch_id: id, events, fragment, ..Default::default() };
                    self.send(progress, response).await?;
                }
                Ok(())
            }
            Item::Ended { id, error } => match watches.by_id.remove(&id) {
                Some(watch) => self.cancel(id, watch.progress, error).await,
                None => Ok(()),
            },
        }
    }

    /// Tells that the store ended a watch, and where it can be taken up again.
    async fn cancel(&mut self, id: i64, at: Revision, error: Error) -> Result<(), Gone> {
        let compact_revision = match &error {
            Error::Compacted { oldest, .. } => oldest.0,
            _ => 0,
        };
        let cancel_reason = Status::from(error).message.into_owned();
        let response = WatchResponse {
            watch_id: id,
            canceled: true,
            compact_revision,
            cancel_reason,
            ..Default::default()
        };
        self.send(at, response).await
    }

    async fn answer_progress(&mut self, watches: &mut Watches) -> Result<(), Gone> {
        // Without a watch there is nothing to say, as in etcd.
        let Some(least) = watches.by_id.values().map(|watch| watch.progress).min() else {
            watches.asked.clear();
            return Ok(());
        };
        while let Some(asked) = watches.asked.pop_front_if(|asked| *asked <= least) {
            let response = WatchResponse { watch_id: NO_WATCH, ..Default::default() };
            self.send(asked, response).await?;
        }
        Ok(())
    }

    /// Tells the progress of those watches that want to hear of it and have heard nothing.
    async fn notify(&mut self, watches: &mut Watches) -> Result<(), Gone> {
        for (id, watch) in &mut watches.by_id {
            let heard = std::mem::replace(&mut watch.heard, false);
            if watch.progress_notify && !heard {
                let response = WatchResponse { watch_id: *id, ..Default::default() };
                let bytes =
                    frame(&WatchResponse { header: Some(header(watch.progress)), ..response });
                self.sink.send(Ok(bytes)).await.map_err(|_| Gone)?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, at: Revision, response: WatchResponse) -> Result<(), Gone> {
        let bytes = frame(&WatchResponse { header: Some(header(at)), ..response });
        self.sink.send(Ok(bytes)).await.map_err(|_| Gone)
    }
}

impl Watches {
    /// The id of a new watch: the one wanted, or the next that is free when none (0) is.
    fn id(&mut self, wanted: i64) -> Result<i64, String> {
        if self.by_id.len() >= WATCHES_MAX {
            return Err(status::TOO_MANY_REQUESTS.message.into_owned());
        }
        if wanted != 0 {
            return match self.by_id.contains_key(&wanted) {
                true => Err("mvcc: duplicate watch ID provided on the WatchStream".to_owned()),
                false => Ok(wanted),
            };
        }
        while self.by_id.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }
}

/// What a watch lets through, and in which form.
struct Filter {
    bounds: Bounds,
    puts: bool,
    deletes: bool,
    prev_kv: bool,
}

/// Follows one watch until it ends or is aborted.
async fn follow(id: i64, mut watcher: Box<dyn Watcher>, filter: Filter, items: mpsc::Sender<Item>) {
    loop {
        let item = match watcher.next().await {
            Ok(batch) => {
                let events = batch.events.into_iter().filter_map(|event| filter.pass(event));
                Item::Events { id, events: events.collect(), progress: batch.progress }
            }
            Err(error) => Item::Ended { id, error },
        };
        let ended = matches!(item, Item::Ended { .. });
        if items.send(item).await.is_err() || ended {
            return;
        }
    }
}

impl Filter {
    fn pass(&self, event: fp_store::Event) -> Option<proto::Event> {
        let deleted = event.kind == EventKind::Deleted;
        let wanted = if deleted { self.deletes } else { self.puts };
        if !wanted || !self.bounds.contains(&event.row.key) {
            return None;
        }
        let previous = event.previous.filter(|_| self.prev_kv).map(|value| {
            key_value(Row { value, revision: event.previous_revision, ..event.row.clone() })
        });
        let kv = key_value(event.row);
        // Of a delete only the key and its revision are told.
        let kv = match deleted {
            true => KeyValue { key: kv.key, mod_revision: kv.mod_revision, ..Default::default() },
            false => kv,
        };
        let kind = if deleted { EventType::Delete } else { EventType::Put };
        Some(proto::Event { r#type: kind as i32, kv: Some(kv), prev_kv: previous })
    }
}

/// Parts that a client with a limit on messages can take.
fn fragments(events: Vec<proto::Event>) -> Vec<Vec<proto::Event>> {
    let mut parts = vec![Vec::new()];
    let mut n_bytes = 0;
    for event in events {
        let size = event.encoded_len();
        let part = parts.last_mut().expect("there is one");
        if n_bytes + size > MESSAGE_BYTES_MAX && !part.is_empty() {
            parts.push(vec![event]);
            n_bytes = size;
        } else {
            part.push(event);
            n_bytes += size;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_keep_order_and_size() {
        let event = |n_bytes: usize| proto::Event {
            kv: Some(KeyValue { value: vec![0; n_bytes].into(), ..Default::default() }),
            ..Default::default()
        };
        let sizes = |sizes: &[usize]| {
            let parts = fragments(sizes.iter().map(|n| event(*n)).collect());
            let size = |event: &proto::Event| event.kv.as_ref().map_or(0, |kv| kv.value.len());
            parts.iter().map(|part| part.iter().map(size).collect()).collect::<Vec<Vec<_>>>()
        };
        let (half, most) = (MESSAGE_BYTES_MAX / 2, MESSAGE_BYTES_MAX);
        assert_eq!(sizes(&[]), [vec![0; 0]]);
        assert_eq!(sizes(&[1, 2]), [[1, 2]]);
        assert_eq!(sizes(&[half, half, 1]), [vec![half], vec![half, 1]]);
        assert_eq!(sizes(&[most, 1]), [[most], [1]]);
    }
}
