//! A Shard's URLs default to its base URL, which its schema requires.

use async_trait::async_trait;
use fp_admission::{Attributes, Plugin};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::status::Status;

use crate::names::group;

pub struct Shard;

#[async_trait]
impl Plugin for Shard {
    fn name(&self) -> &'static str {
        "tenancy.kcp.io/Shard"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !attributes.is(group::CORE, "shards") {
            return Ok(());
        }
        let Some(base) = object.text(&["spec", "baseURL"]).map(str::to_owned) else {
            return Ok(());
        };
        for url in ["externalURL", "virtualWorkspaceURL"] {
            if object.text(&["spec", url]).unwrap_or("").is_empty() {
                object.map_mut(&["spec"]).insert(url.into(), base.clone().into());
            }
        }
        Ok(())
    }
}
