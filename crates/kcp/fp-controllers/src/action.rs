//! What a pass decides to do: data, made by pure `plan` functions and run in one place.

use std::time::Duration;

use fp_base::{ClusterName, Gvr};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_runtime::Next;

use crate::world::World;

/// Where an action's object lives. `namespace` is empty for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub cluster: ClusterName,
    pub gvr: Gvr,
    pub namespace: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// An object that exists already is no failure.
    Create { at: Target, object: Object },
    /// Replaces the parts of the object that changed; conflicts fail the pass, which is retried.
    Update { at: Target, object: Object, part: Part },
    /// Deletes the object, if it is still the one with this uid. Absence is no failure.
    Delete { at: Target, name: String, uid: String },
}

/// Which part of an object an update is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Main,
    Status,
    Both,
}

/// The writes of one pass. Stages run one after the other; the writes of a stage at once, so that
/// they share the store's commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub stages: Vec<Vec<Action>>,
    /// When to look again although nothing changes.
    pub after: Option<Duration>,
}

impl Plan {
    /// Nothing to do.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn one(action: Action) -> Self {
        Self { stages: vec![vec![action]], after: None }
    }

    /// Adds a stage; an empty one is left out.
    pub fn then(mut self, actions: Vec<Action>) -> Self {
        if !actions.is_empty() {
            self.stages.push(actions);
        }
        self
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.after = Some(self.after.map_or(delay, |d| d.min(delay)));
        self
    }
}

/// The update that turns `old` into `new`, if it changes anything. Status and the rest are told
/// apart, since they are written through different subresources.
pub fn update(at: Target, old: &Object, new: Object) -> Option<Action> {
    let without = |o: &Object| {
        let mut rest = o.clone();
        rest.remove("status");
        rest
    };
    let status = old.get("status") != new.get("status");
    let main = without(old) != without(&new);
    let part = match (main, status) {
        (false, false) => return None,
        (true, false) => Part::Main,
        (false, true) => Part::Status,
        (true, true) => Part::Both,
    };
    Some(Action::Update { at, object: new, part })
}

/// Runs a plan; the first refusal ends it.
pub async fn run(world: &World, plan: Plan) -> Result<Next, Status> {
    for stage in plan.stages {
        if let [_] = stage.as_slice() {
            for action in stage {
                act(world, action).await?;
            }
            continue;
        }
        let all = stage.into_iter().map(|action| act(world, action));
        for outcome in futures_util::future::join_all(all).await {
            outcome?;
        }
    }
    Ok(plan.after.map_or(Next::Done, Next::After))
}

async fn act(world: &World, action: Action) -> Result<(), Status> {
    match action {
        Action::Create { at, object } => match world.create(&at, object).await {
            Err(refused) if refused.code == 409 => Ok(()),
            outcome => outcome.map(drop),
        },
        Action::Update { at, object, part: Part::Main } => {
            world.update(&at, object).await.map(drop)
        }
        Action::Update { at, object, part: Part::Status } => {
            world.update_status(&at, object).await.map(drop)
        }
        Action::Update { at, object, part: Part::Both } => {
            world.update_whole(&at, object).await.map(drop)
        }
        Action::Delete { at, name, uid } => match world.delete(&at, &name, &uid).await {
            Err(refused) if refused.code == 404 => Ok(()),
            outcome => outcome,
        },
    }
}

/// A plan as text, for tests: one line a write.
pub fn describe(plan: &Plan) -> String {
    let mut out = String::new();
    for stage in &plan.stages {
        for action in stage {
            let (verb, at, what) = match action {
                Action::Create { at, object } => {
                    ("create".to_owned(), at, object.name().to_owned())
                }
                Action::Update { at, object, part } => {
                    (format!("update {part:?}").to_lowercase(), at, object.name().to_owned())
                }
                Action::Delete { at, name, .. } => ("delete".to_owned(), at, name.clone()),
            };
            let namespace =
                if at.namespace.is_empty() { String::new() } else { format!("{}/", at.namespace) };
            out.push_str(&format!("{verb} {} {}|{namespace}{what}\n", at.gvr.resource, at.cluster));
        }
    }
    if let Some(after) = plan.after {
        out.push_str(&format!("after {after:?}\n"));
    }
    out
}
