//! The keys of the store, read from the file of a server that has stopped.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::normal::Words;
use super::{facts, lines_differ};

/// The clusters of the facts' workspaces.
const RANDOM: [(&str, &str); 2] =
    [("338rzxtns0c9c77z", "<root:acme>"), ("2uqs24hp209i7ju0", "<root:acme:team-a>")];

pub fn differences(file: &Path, words: &Words) -> Vec<String> {
    let theirs = Words::new(RANDOM.map(|(cluster, word)| (cluster.to_owned(), word)));
    let theirs = facts("keys.txt").lines().map(|key| theirs.text(key)).collect();
    let ours = read(file).iter().map(|key| words.text(key)).collect();
    lines_differ("keys", ours, theirs)
}

/// Every key that is there.
fn read(file: &Path) -> Vec<String> {
    let store = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("open the store's file");
    // SQLite takes the other columns from the row of the maximum.
    let query = "SELECT name, deleted, MAX(id) FROM kine WHERE name GLOB '/registry/*' \
                 GROUP BY name";
    let mut query = store.prepare(query).expect("a good query");
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
    let rows = query.query_map([], row).expect("run the query");
    let rows = rows.map(|row| row.expect("a row of the store"));
    rows.filter(|(_, deleted)| *deleted == 0).map(|(name, _)| name).collect()
}
