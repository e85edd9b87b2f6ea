//! A finalizer that every object of a kind must have and only the server takes away.

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::status::Status;
use serde_json::Value;

use super::forbidden;

pub struct Finalizer {
    pub plugin: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub finalizer: &'static str,
}

impl Finalizer {
    fn on(&self, object: &Object) -> bool {
        object.finalizers().contains(&self.finalizer)
    }
}

#[async_trait]
impl Plugin for Finalizer {
    fn name(&self) -> &'static str {
        self.plugin
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if attributes.is(self.group, self.resource) && !self.on(object) && !object.is_deleting() {
            let list = object
                .map_mut(&["metadata"])
                .entry("finalizers")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                list.push(self.finalizer.into());
            }
        }
        Ok(())
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.is(self.group, self.resource)) else {
            return Ok(());
        };
        let name = self.finalizer;
        match attributes.operation {
            Operation::Create if !self.on(object) => {
                Err(forbidden(attributes, Some(object), format!("finalizer {name} is required")))
            }
            Operation::Update if !self.on(object) && !object.is_deleting() => {
                Err(forbidden(attributes, Some(object), format!("finalizer {name} is required")))
            }
            Operation::Update if !self.on(object) => {
                let removes = attributes.old.is_some_and(|old| self.on(old));
                if removes && !attributes.user.is_master() {
                    return Err(forbidden(
                        attributes,
                        Some(object),
                        format!("removing the finalizer {name} is forbidden"),
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
