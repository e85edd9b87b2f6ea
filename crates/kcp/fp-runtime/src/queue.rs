//! A queue of keys: deduplicating, delayed, with back-off per key.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use fp_informer::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The first retry's delay; doubles with every failure.
pub const RETRY_FIRST: Duration = Duration::from_millis(5);
/// The longest delay between retries.
pub const RETRY_MOST: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    ready: VecDeque<ObjectKey>,
    /// Keys in `ready`, or to be added again when their worker is done.
    dirty: HashSet<ObjectKey>,
    working: HashSet<ObjectKey>,
    /// By time and a number that keeps equal times apart.
    later: BTreeMap<(Instant, u64), ObjectKey>,
    /// The earliest time each delayed key is due.
    due: HashMap<ObjectKey, (Instant, u64)>,
    failures: HashMap<ObjectKey, u32>,
    next_number: u64,
    closed: bool,
}

/// The queue of one controller. It holds each key once, so its bound is the number of objects.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

impl Queue {
    /// Adds a key, to be worked on as soon as a worker is free.
    pub fn add(&self, key: ObjectKey) {
        if self.state.lock().add(key) {
            self.changed.notify_one();
        }
    }

    /// Adds a key after a delay; an earlier due time that it already has stays.
    pub fn add_after(&self, key: ObjectKey, delay: Duration) {
        let mut state = self.state.lock();
        let at = Instant::now() + delay;
        if let Some(&(due, number)) = state.due.get(&key) {
            if due <= at {
                return;
            }
            state.later.remove(&(due, number));
        }
        state.next_number += 1;
        let slot = (at, state.next_number);
        state.later.insert(slot, key.clone());
        state.due.insert(key, slot);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after its back-off, which grows with every call until [`Queue::forget`].
    pub fn retry(&self, key: ObjectKey) {
        let failures = {
            let mut state = self.state.lock();
            let count = state.failures.entry(key.clone()).or_insert(0);
            *count += 1;
            *count - 1
        };
        self.add_after(key, RETRY_FIRST.saturating_mul(1 << failures.min(20)).min(RETRY_MOST));
    }

    /// Ends a key's back-off.
    pub fn forget(&self, key: &ObjectKey) {
        self.state.lock().failures.remove(key);
    }

    /// The next key, which the caller owns until [`Queue::done`]. `None` when the queue is closed.
    pub async fn next(&self) -> Option<ObjectKey> {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut state = self.state.lock();
                if state.closed {
                    self.changed.notify_one();
                    return None;
                }
                state.promote(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    state.dirty.remove(&key);
                    state.working.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.later.keys().next().map(|(at, _)| *at)
            };
            match due {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// Gives a key back; it is ready again when it was added meanwhile.
    pub fn done(&self, key: &ObjectKey) {
        let mut state = self.state.lock();
        state.working.remove(key);
        if state.dirty.contains(key) {
            state.ready.push_back(key.clone());
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Ends every [`Queue::next`].
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }
}

impl State {
    /// True when a worker may have something to do.
    fn add(&mut self, key: ObjectKey) -> bool {
        if !self.dirty.insert(key.clone()) || self.working.contains(&key) {
            return false;
        }
        self.ready.push_back(key);
        true
    }

    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.later.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            self.due.remove(&key);
            self.add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fp_base::ClusterName;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { cluster: ClusterName::root(), namespace: "".into(), name: name.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_worked_on_once_at_a_time() {
        let queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.next().await, Some(key("a")));
        queue.add(key("a"));
        assert_eq!(queue.next().await, Some(key("b")));
        let waits = tokio::time::timeout(Duration::from_secs(9), queue.next()).await;
        assert!(waits.is_err(), "a is still being worked on");
        queue.done(&key("a"));
        assert_eq!(queue.next().await, Some(key("a")));
    }

    #[tokio::test(start_paused = true)]
    async fn delays_and_back_off() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_after(key("late"), Duration::from_secs(60));
        queue.add_after(key("late"), Duration::from_secs(5));
        queue.add_after(key("late"), Duration::from_secs(90));
        assert_eq!(queue.next().await, Some(key("late")));
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done(&key("late"));
        for want in [5, 10, 20] {
            let before = Instant::now();
            queue.retry(key("x"));
            let got = queue.next().await.unwrap();
            assert!(
                before.elapsed().as_millis() >= want && before.elapsed().as_millis() <= want + 2
            );
            queue.done(&got);
        }
        queue.close();
        assert_eq!(queue.next().await, None);
        assert_eq!(queue.next().await, None);
    }
}
