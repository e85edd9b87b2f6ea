//! How a schema's lists merge under a strategic merge patch.

use fp_object::patch::Shape;

use super::{ListType, Node};

/// Lists of type `map` merge by their first key, sets by value; atomic lists are replaced. Parts
/// without such lists are left out.
pub(super) fn shape(node: &Node) -> Shape {
    let merge_key = match &node.list {
        ListType::Map(keys) => keys.first().cloned(),
        ListType::Set => Some(Box::default()),
        ListType::Atomic => None,
    };
    // A list's own members are those of its items.
    let node = node.items.as_deref().unwrap_or(node);
    let some = |node: &Node| Some(shape(node)).filter(|s| !s.is_empty());
    Shape {
        merge_key,
        members: node
            .properties
            .iter()
            .filter_map(|(name, node)| Some((name.clone(), some(node)?)))
            .collect(),
        others: node.additional.schema().and_then(some).map(Box::new),
    }
}
