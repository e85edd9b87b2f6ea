//! The statements, prepared once in every session.
//!
//! Invariant: what a reader returns together comes from one statement, so from one snapshot. The
//! writer runs READ COMMITTED: each of its statements sees what was committed before it.

use tokio_postgres::{Client, Statement};

/// The order is that of [`TEXTS`].
#[derive(Clone, Copy)]
pub(crate) enum Sql {
    Lock,
    Log,
    Newest,
    Unchanged,
    Allocate,
    Insert,
    InsertSpans,
    InsertExpiry,
    DeleteExpiry,
    Holders,
    Head,
    Compacted,
    Get,
    List,
    Count,
    Page,
    NamesOf,
    Adopt,
    Leases,
    Step,
    SetCompacted,
    DeleteSpans,
    NoteSeen,
}

const TEXTS: [&str; 23] = [
    // The order among Ferroplane's writers; the number is any, but the same in all.
    "SELECT pg_advisory_xact_lock(5063266103265853)",
    "SELECT id, name, created, deleted, create_revision, lease, value, old_value, prev_revision \
     FROM kine WHERE id > $1 ORDER BY id LIMIT $2",
    "SELECT names.name, newest.* FROM unnest($1::text[]) AS names(name) CROSS JOIN LATERAL \
     (SELECT id, deleted, created, create_revision, lease, value FROM kine \
      WHERE kine.name = names.name ORDER BY id DESC LIMIT 1) AS newest",
    // A walk over the rows since, for each range.
    "SELECT NOT EXISTS (SELECT FROM kine WHERE id > since AND name >= first AND name < after) \
     AND since >= (SELECT coalesce(max(prev_revision), 0) FROM kine WHERE name = 'compact_rev_key') \
     FROM unnest($1::text[], $2::text[], $3::bigint[]) \
     WITH ORDINALITY AS ranges(first, after, since, place) ORDER BY place",
    "SELECT nextval($1::oid::regclass) FROM generate_series(1, $2::bigint)",
    "INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, value, \
     old_value) SELECT * FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::integer[], \
     $5::bigint[], $6::bigint[], $7::integer[], $8::bytea[], $9::bytea[])",
    "INSERT INTO fp_span (first, last) SELECT * FROM unnest($1::bigint[], $2::bigint[])",
    "INSERT INTO fp_expiry (id, expires_ms) SELECT id, fp.now_ms + ttl_secs * 1000 \
     FROM unnest($1::bigint[], $2::bigint[]) AS leased(id, ttl_secs), \
     (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms) AS fp",
    "DELETE FROM fp_expiry WHERE id = ANY($1)",
    // Every transaction that has taken an id and still lives.
    "SELECT virtualtransaction, pid FROM pg_locks WHERE locktype = 'relation' AND relation = $1 \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND mode = 'RowExclusiveLock' AND granted AND pid IS DISTINCT FROM pg_backend_pid()",
    "SELECT greatest((SELECT max(id) FROM kine), \
     (SELECT max(prev_revision) FROM kine WHERE name = 'compact_rev_key'), 0)",
    "SELECT coalesce(max(prev_revision), 0) FROM kine WHERE name = 'compact_rev_key'",
    "SELECT c.compacted, newest.* FROM \
     (SELECT coalesce(max(prev_revision), 0) AS compacted FROM kine WHERE name = 'compact_rev_key') \
     AS c LEFT JOIN (SELECT id, deleted, created, create_revision, lease, value FROM kine \
     WHERE name = $1 AND id <= $2 ORDER BY id DESC LIMIT 1) AS newest ON true",
    "SELECT c.compacted, rows.* FROM \
     (SELECT coalesce(max(prev_revision), 0) AS compacted FROM kine WHERE name = 'compact_rev_key') \
     AS c LEFT JOIN (SELECT kine.id, kine.deleted, kine.created, kine.create_revision, kine.lease, \
     kine.value, kine.name FROM (SELECT id FROM (SELECT DISTINCT ON (name) name, id, deleted \
     FROM kine WHERE name >= $1 AND name < $2 AND name > $3 AND id <= $4 \
     AND name <> 'compact_rev_key' ORDER BY name, id DESC) AS newest \
     WHERE deleted = 0 ORDER BY name LIMIT $5) AS live JOIN kine USING (id)) AS rows ON true \
     ORDER BY rows.name",
    "SELECT (SELECT coalesce(max(prev_revision), 0) FROM kine WHERE name = 'compact_rev_key'), \
     count(*) FROM (SELECT DISTINCT ON (name) deleted FROM kine \
     WHERE name >= $1 AND name < $2 AND id <= $3 AND name <> 'compact_rev_key' \
     ORDER BY name, id DESC) AS newest WHERE deleted = 0",
    // So many rows and bytes of the log, and on to the end of a transaction that was begun.
    "WITH page AS (SELECT id, sum(coalesce(octet_length(value), 0) \
     + coalesce(octet_length(old_value), 0)) OVER (ORDER BY id) AS n_bytes FROM \
     (SELECT id, value, old_value FROM kine WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS r), \
     cut AS (SELECT coalesce(max(id) FILTER (WHERE n_bytes <= $4), min(id)) AS id FROM page), \
     until AS (SELECT greatest(cut.id, (SELECT last FROM fp_span WHERE first <= cut.id \
     ORDER BY first DESC LIMIT 1)) AS id FROM cut) \
     SELECT id, name, created, deleted, create_revision, lease, value, old_value, prev_revision, \
     c.compacted FROM \
     (SELECT coalesce(max(prev_revision), 0) AS compacted FROM kine WHERE name = 'compact_rev_key') \
     AS c LEFT JOIN (SELECT kine.* FROM kine, until WHERE kine.id > $1 AND kine.id <= until.id) \
     AS rows ON true ORDER BY id",
    "SELECT id, name FROM kine WHERE id = ANY($1) AND deleted = 0",
    "INSERT INTO fp_expiry (id, expires_ms) SELECT id, fp.now_ms + lease::bigint * 1000 FROM kine, \
     (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms) AS fp \
     WHERE id > $1 AND id <= $2 AND lease > 0 AND deleted = 0 ON CONFLICT DO NOTHING",
    // How long each leased row still has; a clock that stepped gives none more than its TTL.
    "SELECT id, least(greatest(expires_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
     0), lease::bigint * 1000) FROM fp_expiry JOIN kine USING (id) WHERE id > $1 AND id <= $2",
    // kine's compaction (`CompactSQL` of its PostgreSQL driver) of some rows of the log; the row
    // with the highest id stays, because kine takes it for the newest revision.
    "WITH page AS (SELECT id, prev_revision, deleted FROM kine WHERE id >= $1 AND id <= $2 \
     AND name <> 'compact_rev_key' ORDER BY id LIMIT $3), \
     gone AS (DELETE FROM kine WHERE id IN (SELECT prev_revision FROM page \
     WHERE prev_revision <> 0 UNION SELECT id FROM page WHERE deleted <> 0 \
     AND id <> (SELECT max(id) FROM kine))) \
     SELECT count(*), max(id) FROM page",
    "UPDATE kine SET prev_revision = $2 WHERE name = 'compact_rev_key' AND prev_revision = $1",
    "DELETE FROM fp_span WHERE last <= $1",
    "INSERT INTO fp_meta (name, value) VALUES ('leases_seen', $1) \
     ON CONFLICT (name) DO UPDATE SET value = greatest(fp_meta.value, excluded.value)",
];

pub(crate) fn text(which: Sql) -> &'static str {
    TEXTS[which as usize]
}

pub(crate) struct Statements(Vec<Statement>);

impl Statements {
    pub(crate) async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let all = TEXTS.iter().map(|text| client.prepare(text));
        Ok(Self(futures_util::future::try_join_all(all).await?))
    }

    pub(crate) fn get(&self, which: Sql) -> &Statement {
        &self.0[which as usize]
    }
}
