//! The one retry loop: a write of an existing object, in rounds.
//!
//! A round works on the object that memory holds. A write that the store takes proves that this was
//! the newest one; a store that refuses says what is there now, which is the next round's object.
//! What is not proved so (a refusal, or that nothing changes) counts only when the object is the
//! newest: it is looked at again first. (apiserver's `etcd3/store.go`, GuaranteedUpdate.)

use std::sync::Arc;

use fp_informer::Entry;
use fp_object::status::Status;
use fp_registry::Freshness;

use crate::status::{OPTIMISTIC_LOCK, from_registry};
use crate::target::Target;

/// How often another write may come between.
const CONFLICTS_MAX: usize = 16;

/// What came of a round.
pub enum Round<T> {
    Written(T),
    /// Nothing was written, nor had to be.
    Kept(T),
    /// Another write came between: what is there now.
    Again(Option<Arc<Entry>>),
}

pub struct Rounds<'a> {
    target: Target<'a>,
    /// The object of the next round.
    pub entry: Option<Arc<Entry>>,
    /// It is surely the newest.
    sure: bool,
    conflicts: usize,
}

impl<'a> Rounds<'a> {
    pub async fn begin(target: Target<'a>) -> Result<Self, Status> {
        let known = target.surface.backend.get(target.info, &target.key(), Freshness::Any).await;
        let known = known.map_err(|e| from_registry(&e, target.about()))?;
        let mut rounds = Self { target, sure: false, entry: known, conflicts: 0 };
        if rounds.entry.is_none() {
            rounds.look_again().await?;
        }
        Ok(rounds)
    }

    /// The result, or `None` when there is another round.
    pub async fn after<T>(
        &mut self,
        outcome: Result<Round<T>, Status>,
    ) -> Option<Result<T, Status>> {
        let result = match outcome {
            Ok(Round::Written(value)) => return Some(Ok(value)),
            Ok(Round::Again(now)) => {
                self.conflicts += 1;
                if self.conflicts > CONFLICTS_MAX {
                    return Some(Err(Status::conflict(self.target.about(), OPTIMISTIC_LOCK)));
                }
                (self.entry, self.sure) = (now, true);
                return None;
            }
            Ok(Round::Kept(value)) => Ok(value),
            // The outcome may be unknown: nothing is sent twice.
            Err(status) if status.code >= 500 => return Some(Err(status)),
            Err(status) => Err(status),
        };
        if self.sure {
            return Some(result);
        }
        let before = self.entry.as_ref().map(|e| e.revision);
        if let Err(status) = self.look_again().await {
            return Some(Err(status));
        }
        (self.entry.as_ref().map(|e| e.revision) == before).then_some(result)
    }

    async fn look_again(&mut self) -> Result<(), Status> {
        let target = self.target;
        let found = target.surface.backend.get(target.info, &target.key(), Freshness::Newest).await;
        self.entry = found.map_err(|e| from_registry(&e, target.about()))?;
        self.sure = true;
        Ok(())
    }
}
