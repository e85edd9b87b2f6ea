//! From a change of an object to the keys of a controller.

use std::sync::Arc;

use fp_informer::{Change, Informer, ObjectKey, TableId};
use fp_runtime::{Queue, Reconciler, Runner};

use crate::world::World;

/// Which changes wake a controller. The table is named without its segment: exports of one
/// resource under other identities come too, and the controller looks its own up.
pub struct Route {
    pub group: &'static str,
    pub resource: &'static str,
    pub keys: Keys,
}

/// How a changed object becomes keys.
pub enum Keys {
    /// The object itself.
    Own,
    /// From the change alone, cheaply: this runs in the informer's feed.
    Change(fn(&Change) -> Vec<ObjectKey>),
    /// By looking things up, in a worker of its own.
    Lookup(fn(&World, &ObjectKey) -> Vec<ObjectKey>),
}

/// A controller: its name, what wakes it, and how it is made.
pub struct Controller {
    pub name: &'static str,
    pub routes: &'static [Route],
    pub make: fn(Arc<World>) -> Arc<dyn Reconciler>,
}

/// Controllers that run.
pub struct Running {
    runner: Runner,
    informer: Arc<Informer>,
    follower: u64,
}

impl Running {
    /// Feeds them no more, lets passes that run finish, and returns when all have.
    pub async fn stop(self) {
        self.informer.unfollow(self.follower);
        self.runner.stop().await;
    }
}

/// Starts controllers: their workers, and the observers that feed them (which first tell of all
/// that exists).
pub fn start(
    controllers: &'static [Controller],
    world: &Arc<World>,
    informer: &Arc<Informer>,
) -> Running {
    let mut runner = Runner::default();
    let mut feeds: Vec<(&'static Route, Arc<Queue>)> = Vec::new();
    for controller in controllers {
        let queue = Arc::new(Queue::default());
        runner.start((controller.make)(world.clone()), queue.clone());
        for route in controller.routes {
            let feed = match route.keys {
                Keys::Own | Keys::Change(_) => queue.clone(),
                Keys::Lookup(lookup) => {
                    let inbox = Arc::new(Queue::default());
                    let mapper = Mapper {
                        name: controller.name,
                        world: world.clone(),
                        lookup,
                        out: queue.clone(),
                    };
                    runner.start(Arc::new(mapper), inbox.clone());
                    inbox
                }
            };
            feeds.push((route, feed));
        }
    }
    let feed = move |table: &TableId, change: &Change| feed(&feeds, table, change);
    let follower = informer.follow(Arc::new(feed));
    Running { runner, informer: informer.clone(), follower }
}

fn feed(feeds: &[(&'static Route, Arc<Queue>)], table: &TableId, change: &Change) {
    for (route, queue) in feeds {
        if *route.resource != *table.gr.resource || *route.group != *table.gr.group {
            continue;
        }
        match route.keys {
            Keys::Own | Keys::Lookup(_) => queue.add(change.entry.key.clone()),
            Keys::Change(keys) => keys(change).into_iter().for_each(|key| queue.add(key)),
        }
    }
}

/// Turns keys of one resource into keys of a controller.
struct Mapper {
    name: &'static str,
    world: Arc<World>,
    lookup: fn(&World, &ObjectKey) -> Vec<ObjectKey>,
    out: Arc<Queue>,
}

#[async_trait::async_trait]
impl Reconciler for Mapper {
    fn name(&self) -> &'static str {
        self.name
    }

    fn workers(&self) -> usize {
        1
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<fp_runtime::Next, fp_runtime::Error> {
        for key in (self.lookup)(&self.world, key) {
            self.out.add(key);
        }
        Ok(fp_runtime::Next::Done)
    }
}
