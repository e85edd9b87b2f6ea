//! `ferroplane store stats|compact|verify|backup|restore|migrate`: what an operator does to a store.
//!
//! Invariant: a target is complete or as it was; whatever stops a command is told in one line.

mod copy;
mod flags;
mod progress;

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use fp_base::Revision;
use fp_store::Store;
use fp_store_backup::{BackupFile, Header, Reader, Writer};
use fp_store_sql::{PostgresStore, SqliteStore, Tuning, Usage};
use serde_json::{Value, json};

use super::options::Backend;
use crate::start::stop_signals;
use copy::{Snapshot, Target, copy};
use flags::Asked;
pub use flags::commands;
use progress::Progress;

/// What an exit code says; 2 is a command line that makes no sense.
const FAULTS_FOUND: u8 = 3;
/// How often a compaction is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Connections and event bytes of a store that is opened only to be compacted.
const N_READERS: usize = 1;
const RING_BYTES: usize = 64 << 10;

/// What a command says: as text, as JSON, and by its exit code.
struct Report {
    text: String,
    json: Value,
    code: u8,
}

impl Report {
    fn good(text: String, json: Value) -> Self {
        Self { text, json, code: 0 }
    }
}

/// Runs the command `name`. Returns the exit code.
pub fn run(name: &str, given: &ArgMatches) -> Result<u8> {
    let asked = match Asked::from_flags(name, given) {
        Ok(asked) => asked,
        Err(error) => {
            // As where clap refuses.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            return Ok(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("start threads")?;
    let report = runtime.block_on(async {
        let mut stop = stop_signals()?;
        tokio::select! {
            report = act(name, &asked) => report,
            _ = stop.recv() => bail!("stopped"),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let report = report?;
    let text = if asked.json { format!("{:#}\n", report.json) } else { report.text };
    std::io::stdout().lock().write_all(text.as_bytes()).context("print the result")?;
    Ok(report.code)
}

async fn act(name: &str, asked: &Asked) -> Result<Report> {
    match (name, &asked.file) {
        ("stats", _) => stats(asked).await,
        ("compact", _) => compact(asked).await,
        ("verify", Some(file)) => verify_file(file),
        ("verify", None) => verify_store(asked).await,
        ("backup", Some(file)) => backup(asked, file).await,
        ("restore", Some(file)) => restore(asked, file).await,
        ("migrate", _) => migrate(asked).await,
        _ => bail!("{name} needs a file"),
    }
}

async fn stats(asked: &Asked) -> Result<Report> {
    let there = Snapshot::open(&asked.backend).await?;
    let Usage { n_rows, n_keys, live_bytes, prefixes, parts } = there.usage(asked.depth).await?;
    let (head, compacted) = there.revisions();
    let (name, top) = (asked.backend.to_string(), &prefixes[..asked.top.min(prefixes.len())]);
    let mut text = format!(
        "store             {name}\nrevision          {head}\ncompact revision  {compacted}\n\
         keys              {n_keys}\nrows              {n_rows}\nbytes of keys     {live_bytes}\n"
    );
    parts.iter().for_each(|(part, bytes)| text.push_str(&format!("{part:<17} {bytes} bytes\n")));
    text.push_str("\n      keys        bytes  prefix\n");
    for p in top {
        text.push_str(&format!("{:>10} {:>12}  {}\n", p.n_keys, p.bytes, p.prefix));
    }
    let sizes: serde_json::Map<_, _> =
        parts.iter().map(|(part, bytes)| ((*part).to_owned(), json!(bytes))).collect();
    let one = |p: &fp_store_sql::PrefixUsage| json!({"prefix": p.prefix, "keys": p.n_keys, "bytes": p.bytes});
    let json = json!({
        "store": name, "revision": head.0, "compactRevision": compacted.0, "keys": n_keys,
        "rows": n_rows, "keyBytes": live_bytes, "sizeBytes": sizes,
        "prefixes": top.iter().map(one).collect::<Vec<_>>(),
    });
    Ok(Report::good(text, json))
}

async fn compact(asked: &Asked) -> Result<Report> {
    // A look first: a store that is not there is not made.
    let (head, before) = Snapshot::open(&asked.backend).await?.revisions();
    let at = match (asked.revision, asked.keep) {
        (Some(revision), _) => Revision(revision),
        (None, keep) => Revision(head.0 - keep.unwrap_or(0)),
    };
    if at > head {
        bail!("revision {at} is in the future, newest is {head}");
    }
    let store = open(&asked.backend).await?;
    let total = (at.0 - before.0).max(0).unsigned_abs();
    let mut progress = Progress::new("compact", "revisions", total);
    let mut look = tokio::time::interval(LOOK_EVERY);
    let done = {
        let mut compacting = store.compact(at);
        loop {
            tokio::select! {
                done = &mut compacting => break done,
                _ = look.tick() => {
                    let by_now = store.compacted().await.unwrap_or(before);
                    progress.at((by_now.0 - before.0).max(0).unsigned_abs());
                }
            }
        }
    };
    store.close().await;
    let compacted = done?;
    progress.end(total);
    let text = format!("compacted to revision {compacted}, from {before}; newest is {head}\n");
    let json = json!({"compactRevision": compacted.0, "before": before.0, "revision": head.0});
    Ok(Report::good(text, json))
}

/// The store itself, for a write.
async fn open(backend: &Backend) -> Result<Arc<dyn Store>> {
    let tuning = Tuning {
        n_readers: N_READERS,
        ring_bytes_max: RING_BYTES,
        compact_interval: None,
        compact_keep: Duration::ZERO,
        compact_keep_revisions: 0,
    };
    Ok(match backend {
        Backend::Memory => bail!("memory:// keeps nothing"),
        Backend::Sqlite(path) => SqliteStore::open(path, tuning)?,
        Backend::Postgres(dsn) => PostgresStore::open((**dsn).clone(), tuning).await?,
    })
}

fn verdict(what: &str, n_keys: u64, faults: &[Value], lines: &[String], about: Value) -> Report {
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let good = faults.is_empty();
    let said = if good { "no fault".into() } else { format!("{} faults", faults.len()) };
    text.push_str(&format!("{what}: {n_keys} keys, {said}\n"));
    let mut json = json!({"ok": good, "keys": n_keys, "faults": faults});
    if let (Some(json), Value::Object(about)) = (json.as_object_mut(), about) {
        json.extend(about);
    }
    Report { text, json, code: if good { 0 } else { FAULTS_FOUND } }
}

fn verify_file(file: &Path) -> Result<Report> {
    let shown = file.display().to_string();
    let input = File::open(file).with_context(|| format!("open {shown}"))?;
    let mut progress = Progress::new("verify", "keys", 0);
    let found = fp_store_backup::check(BufReader::new(input), &mut |n| progress.at(n));
    let found = found.with_context(|| format!("read {shown}"))?;
    progress.end(found.n_keys);
    let lines: Vec<_> = found.faults.iter().map(ToString::to_string).collect();
    let faults: Vec<_> = lines.iter().map(|what| json!({"what": what})).collect();
    let mut about = json!({"file": shown, "bytes": found.n_bytes});
    if let Some(header) = &found.header {
        about["revision"] = header.revision.0.into();
        about["prefix"] = header.prefix.clone().into();
        about["source"] = header.source.clone().into();
    }
    Ok(verdict(&shown, found.n_keys, &faults, &lines, about))
}

async fn verify_store(asked: &Asked) -> Result<Report> {
    let there = Snapshot::open(&asked.backend).await?;
    let mut progress = Progress::new("verify", "rows", 0);
    let (faults, n_rows, n_keys) = there.check(&mut |n| progress.at(n)).await?;
    progress.end(n_rows);
    let shown = asked.backend.to_string();
    let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
    let one = |f: &fp_store_sql::Fault| json!({"id": f.id, "key": f.key, "what": f.what});
    let faults: Vec<_> = faults.iter().map(one).collect();
    let (head, compacted) = there.revisions();
    let about = json!({
        "store": shown, "rows": n_rows, "revision": head.0, "compactRevision": compacted.0,
    });
    Ok(verdict(&shown, n_keys, &faults, &lines, about))
}

async fn backup(asked: &Asked, file: &Path) -> Result<Report> {
    let shown = file.display().to_string();
    let from = Snapshot::open(&asked.backend).await?;
    let n_keys = from.count(&asked.prefix).await?;
    let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let header = Header {
        source: from.kind().to_owned(),
        revision: from.revisions().0,
        n_keys,
        prefix: asked.prefix.clone(),
        taken_secs: taken.as_secs(),
    };
    let revision = header.revision;
    let out = BackupFile::create(file).with_context(|| format!("write {shown}"))?;
    let out = Writer::new(out, header).with_context(|| format!("write {shown}"))?;
    let mut progress = Progress::new("backup", "keys", n_keys);
    let mut target = Target::File(Box::new(out));
    copy(&from, &asked.prefix, &mut target, &mut progress)
        .await
        .with_context(|| format!("back up into {shown}"))?;
    let n_bytes = target.finish(revision).await.with_context(|| format!("write {shown}"))?;
    progress.end(n_keys);
    let text = format!("{shown}: {n_keys} keys at revision {revision}, {n_bytes} bytes\n");
    let json = json!({
        "file": shown, "revision": revision.0, "keys": n_keys, "prefix": asked.prefix, "bytes": n_bytes,
    });
    Ok(Report::good(text, json))
}

async fn restore(asked: &Asked, file: &Path) -> Result<Report> {
    let shown = file.display().to_string();
    let input = File::open(file).with_context(|| format!("open {shown}"))?;
    let mut reader = Reader::open(BufReader::new(input)).with_context(|| shown.clone())?;
    let Header { revision, n_keys, .. } = *reader.header();
    let mut progress = Progress::new("restore", "keys", n_keys);
    let mut target = Target::open(&asked.backend).await?;
    let mut n_done = 0;
    while let Some(rows) = reader.next_rows().with_context(|| shown.clone())? {
        target.rows(&rows).await?;
        n_done += rows.len() as u64;
        progress.at(n_done);
        tokio::task::yield_now().await;
    }
    target.finish(revision).await?;
    progress.end(n_keys);
    let store = asked.backend.to_string();
    let text = format!("{store}: {n_keys} keys at revision {revision} restored from {shown}\n");
    let json = json!({"store": store, "file": shown, "revision": revision.0, "keys": n_keys});
    Ok(Report::good(text, json))
}

async fn migrate(asked: &Asked) -> Result<Report> {
    let Some(backend) = &asked.to else { bail!("migrate needs --to") };
    let from = Snapshot::open(&asked.backend).await?;
    let (revision, n_keys) = (from.revisions().0, from.count("").await?);
    let mut progress = Progress::new("migrate", "keys", n_keys);
    let mut target = Target::open(backend).await?;
    let n_copied = copy(&from, "", &mut target, &mut progress).await?;
    if n_copied != n_keys {
        bail!("{n_copied} keys were copied instead of {n_keys}");
    }
    let by_now = from.head_now().await?;
    if by_now != revision {
        bail!(
            "{} was written meanwhile (revision {revision} at the start, {by_now} now): stop what \
             writes it; {backend} is empty",
            asked.backend
        );
    }
    target.finish(revision).await?;
    progress.end(n_keys);
    let (from, to) = (asked.backend.to_string(), backend.to_string());
    let text = format!("{n_keys} keys at revision {revision} migrated from {from} to {to}\n");
    let json = json!({"from": from, "to": to, "revision": revision.0, "keys": n_keys});
    Ok(Report::good(text, json))
}
