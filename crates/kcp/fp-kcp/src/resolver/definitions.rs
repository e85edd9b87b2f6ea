//! CRDs as the tiers keep them, and the compiled definitions, shared by content.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use fp_base::Identity;
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use fp_schema::crd::from_crd;
use fp_schema::{ResourceInfo, Segment, resource};
use sha2::{Digest, Sha256};

use crate::names::{self, group};

/// The tier that a definition is wanted for.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    System {
        name: &'a Arc<str>,
    },
    /// `terminating`: the binding that brings it is being deleted.
    Bound {
        name: &'a Arc<str>,
        schema_name: &'a Arc<str>,
        identity: &'a Identity,
        terminating: bool,
    },
    Local {
        name: &'a Arc<str>,
    },
}

impl Origin<'_> {
    fn segment(self) -> Segment {
        match self {
            Self::System { .. } | Self::Local { .. } => Segment::CustomResources,
            Self::Bound { identity, .. } => Segment::Identity(identity.clone()),
        }
    }

    fn of_resource(self) -> resource::Origin {
        match self {
            Self::System { name } => resource::Origin::System { name: name.clone() },
            Self::Bound { name, schema_name, .. } => {
                resource::Origin::Bound { name: name.clone(), schema_name: schema_name.clone() }
            }
            // Without the uid, workspaces that install the same CRD share its definition.
            Self::Local { name } => resource::Origin::Crd { name: name.clone(), uid: "".into() },
        }
    }

    /// What distinguishes definitions made of the same CRD content.
    fn text(self) -> String {
        match self {
            Self::System { name } => format!("system {name}"),
            Self::Bound { name, identity, terminating, .. } => {
                format!("bound {name} {identity} {terminating}")
            }
            Self::Local { name } => format!("local {name}"),
        }
    }
}

/// A stored CRD.
pub struct Definition {
    crd: Object,
    content: [u8; 32],
    established: bool,
    terminating: bool,
}

impl Definition {
    pub fn read(crd: &Object) -> Self {
        let mut hash = Sha256::new();
        for part in [
            crd.get("spec"),
            crd.at(&["status", "acceptedNames"]),
            crd.at(&["metadata", "annotations", names::VALIDATE_NAME]),
        ] {
            hash.update(part.map(Value::to_string).unwrap_or_default());
            hash.update([0]);
        }
        let terminating = crd.is_deleting() || condition(crd, "Terminating");
        Self {
            crd: crd.clone(),
            content: hash.finalize().into(),
            established: condition(crd, "Established"),
            terminating,
        }
    }
}

fn condition(crd: &Object, kind: &str) -> bool {
    let list = crd.at(&["status", "conditions"]).and_then(Value::as_array);
    list.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True")
}

/// The compiled definitions that someone holds.
pub struct Definitions {
    shared: HashMap<[u8; 32], Weak<ResourceInfo>>,
    /// When `shared` has grown to this, the dead ones are removed.
    sweep_at: usize,
}

const SWEEP_FIRST: usize = 256;

impl Definitions {
    pub fn new() -> Self {
        Self { shared: HashMap::new(), sweep_at: SWEEP_FIRST }
    }

    /// The definition, or `None` when the CRD is not established (or, stored by a foreign writer,
    /// cannot be compiled: that is logged).
    pub fn info(
        &mut self,
        definition: &Definition,
        origin: Origin<'_>,
    ) -> Option<Arc<ResourceInfo>> {
        if !definition.established {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update(definition.content);
        hash.update([u8::from(definition.terminating)]);
        hash.update(origin.text());
        let key: [u8; 32] = hash.finalize().into();
        if let Some(info) = self.shared.get(&key).and_then(Weak::upgrade) {
            return Some(info);
        }
        let mut crd = Cow::Borrowed(&definition.crd);
        if matches!(origin, Origin::Bound { terminating: true, .. }) {
            // A binding under deletion makes its CRDs look as if they were, too.
            crd.to_mut().set_meta("deletionTimestamp", "");
        }
        let compiled =
            from_crd(&crd, origin.segment(), origin.of_resource(), &crate::rules::lookup);
        let mut info = match compiled {
            Ok(info) => info,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    crd = definition.crd.name(),
                    error,
                    "a stored CustomResourceDefinition is not served"
                );
                return None;
            }
        };
        if matches!(origin, Origin::System { .. }) && &*info.gr.group == group::APIS {
            info.convert = crate::conversion::of(&info.gr.resource);
        }
        let info = Arc::new(info);
        self.shared.insert(key, Arc::downgrade(&info));
        if self.shared.len() > self.sweep_at {
            self.shared.retain(|_, weak| weak.strong_count() > 0);
            self.sweep_at = (self.shared.len() * 2).max(SWEEP_FIRST);
        }
        Some(info)
    }
}
