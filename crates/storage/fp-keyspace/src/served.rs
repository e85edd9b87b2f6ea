//! From a stored body to the served one: `metadata.resourceVersion` and the annotation
//! `kcp.io/cluster` are spliced into the stored bytes, which are not serialised again.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use fp_base::{ClusterName, Revision};
use serde_json::value::RawValue;

use crate::Error;
use crate::json::push_string;

/// The annotation that names an object's cluster.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// A served body that still lacks its revision, which a write learns last.
#[derive(Debug)]
pub struct Served {
    json: Vec<u8>,
    /// Where the revision's digits go: between the quotes of `resourceVersion`.
    at: usize,
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    pub deleting: bool,
}

impl Served {
    /// Prepares a stored (or served) JSON object. Fails where the JSON could not be read back
    /// into an object: what is prepared here always can.
    pub fn new(json: &[u8], cluster: &ClusterName) -> Result<Self, Error> {
        let text = std::str::from_utf8(json).map_err(|_| Error::Format)?.trim_ascii();
        let Checked = serde_json::from_str(text).map_err(Error::Json)?;
        let Top(metadata) = serde_json::from_str(text).map_err(Error::Json)?;
        let metadata = metadata.ok_or(Error::NoMetadata)?.get();
        let start = metadata.as_ptr() as usize - text.as_ptr() as usize;
        let Members(mut members) = serde_json::from_str(metadata).map_err(Error::Json)?;
        members.sort_by(|a, b| a.0.0.cmp(&b.0.0));

        let mut served = Self {
            json: Vec::with_capacity(text.len() + cluster.as_str().len() + 64),
            at: 0,
            labels: Box::default(),
            deleting: false,
        };
        served.json.extend_from_slice(&text.as_bytes()[..start]);
        served.push_metadata(&members, cluster)?;
        served.json.extend_from_slice(&text.as_bytes()[start + metadata.len()..]);
        Ok(served)
    }

    /// The body at `revision`.
    pub fn json(&self, revision: Revision) -> Vec<u8> {
        let digits = revision.to_string();
        let mut json = Vec::with_capacity(self.json.len() + digits.len());
        json.extend_from_slice(&self.json[..self.at]);
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(&self.json[self.at..]);
        json
    }

    fn push_metadata(
        &mut self,
        members: &[(Name<'_>, &RawValue)],
        cluster: &ClusterName,
    ) -> Result<(), Error> {
        let annotations = members.iter().find(|(name, _)| name.0 == "annotations");
        self.json.extend_from_slice(b"{\"annotations\":");
        self.push_annotations(annotations.map(|(_, raw)| *raw), cluster)?;
        let mut pending = true;
        for (name, raw) in members {
            match &*name.0 {
                "annotations" | "resourceVersion" | "selfLink" => continue,
                "labels" => self.labels = labels(raw)?,
                "deletionTimestamp" => self.deleting = raw.get() != "null",
                _ => {}
            }
            if pending && &*name.0 > "resourceVersion" {
                self.push_revision();
                pending = false;
            }
            self.json.push(b',');
            self.push_member(&name.0, raw.get());
        }
        if pending {
            self.push_revision();
        }
        self.json.push(b'}');
        Ok(())
    }

    fn push_revision(&mut self) {
        self.json.extend_from_slice(b",\"resourceVersion\":\"");
        self.at = self.json.len();
        self.json.push(b'"');
    }

    fn push_annotations(
        &mut self,
        raw: Option<&RawValue>,
        cluster: &ClusterName,
    ) -> Result<(), Error> {
        let Members(mut all) = match raw {
            Some(raw) if raw.get() != "null" => {
                serde_json::from_str(raw.get()).map_err(Error::Json)?
            }
            _ => Members(Vec::new()),
        };
        all.retain(|(name, _)| name.0 != CLUSTER_ANNOTATION);
        let at = all.partition_point(|(name, _)| &*name.0 < CLUSTER_ANNOTATION);
        self.json.push(b'{');
        for (name, raw) in &all[..at] {
            self.push_member(&name.0, raw.get());
            self.json.push(b',');
        }
        push_string(&mut self.json, CLUSTER_ANNOTATION);
        self.json.push(b':');
        push_string(&mut self.json, cluster.as_str());
        for (name, raw) in &all[at..] {
            self.json.push(b',');
            self.push_member(&name.0, raw.get());
        }
        self.json.push(b'}');
        Ok(())
    }

    fn push_member(&mut self, name: &str, raw: &str) {
        push_string(&mut self.json, name);
        self.json.push(b':');
        self.json.extend_from_slice(raw.as_bytes());
    }
}

fn labels(raw: &RawValue) -> Result<Box<[(Box<str>, Box<str>)]>, Error> {
    let map: Option<std::collections::BTreeMap<Box<str>, Box<str>>> =
        serde_json::from_str(raw.get()).map_err(Error::Json)?;
    Ok(map.unwrap_or_default().into_iter().collect())
}

/// A member's name, borrowed where it has no escape.
struct Name<'a>(Cow<'a, str>);

/// Reads any value as `serde_json::Value` would, with all its errors, and keeps nothing.
struct Checked;

/// An object's `metadata`.
struct Top<'a>(Option<&'a RawValue>);

/// An object's members as they are written.
struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Visitor)
    }
}

impl<'de> serde::Deserialize<'de> for Top<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor<'de>(PhantomData<&'de ()>);
        impl<'de> serde::de::Visitor<'de> for Visitor<'de> {
            type Value = Top<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut metadata = None;
                while let Some(Name(name)) = map.next_key()? {
                    if name == "metadata" {
                        metadata = Some(map.next_value()?);
                    } else {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    }
                }
                Ok(Top(metadata))
            }
        }
        from.deserialize_map(Visitor(PhantomData))
    }
}

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(12);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Visitor)
    }
}

impl<'de> serde::Deserialize<'de> for Checked {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Checked)
    }
}

impl<'de> serde::de::Visitor<'de> for Checked {
    type Value = Checked;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(self)
    }
    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
