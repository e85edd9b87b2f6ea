//! kine's table on SQLite: group commit, ordered watch, compaction, TTL.
