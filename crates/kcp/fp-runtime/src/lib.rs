//! Keyed queue, informer subscription, retry.
