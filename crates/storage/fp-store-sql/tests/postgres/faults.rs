//! What goes wrong: a server that ends, a connection that is cut at the worst moment, a server that
//! is not what it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fp_base::Revision;
use fp_store::{Error, Store};
use fp_store_sql::PostgresStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster::{self, Cluster};
use crate::{PATIENCE, dsn, events_up_to, open, put, raw, try_put, tuning, watch};

/// The first write that is not refused.
async fn put_once_up(store: &PostgresStore, key: &str, value: &str) -> Revision {
    let trying = async {
        loop {
            match try_put(store, key, value).await {
                Ok(revision) => return revision,
                Err(Error::Unavailable { .. }) => tokio::task::yield_now().await,
                Err(e) => panic!("{e}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, trying).await.expect("it comes back")
}

/// The server crashes and comes back: what was acknowledged is there, and told once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_loses_nothing() {
    let cluster = Arc::new(Cluster::start(&[]));
    let store = open(&cluster.fresh_database()).await;
    let start = put(&store, "/start", "").await;
    let mut watcher = watch(&store, start.next()).await;
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let (mut acknowledged, mut n_refused) = (Vec::new(), 0);
            for i in 0.. {
                match try_put(&store, "/a", &i.to_string()).await {
                    Ok(revision) => acknowledged.push((revision, i.to_string())),
                    Err(Error::Unavailable { .. } | Error::Unknown(_)) => n_refused += 1,
                    Err(e) => panic!("{e}"),
                }
                // Some before the crash, some after it.
                if n_refused > 0
                    && acknowledged.last().is_some_and(|(_, last)| *last == i.to_string())
                {
                    return acknowledged;
                }
                tokio::task::yield_now().await;
            }
            unreachable!("the loop has no end")
        }
    });
    let crash = cluster.clone();
    put(&store, "/b", "").await;
    tokio::task::spawn_blocking(move || crash.down()).await.expect("it ends");
    assert!(matches!(store.head().await, Err(Error::Unavailable { .. })));
    let back = cluster.clone();
    tokio::task::spawn_blocking(move || back.up()).await.expect("it starts");
    let acknowledged = writer.await.expect("the writer ends");
    let last = acknowledged.last().expect("there are some").0;
    let events = events_up_to(&mut watcher, last).await;
    assert!(events.is_sorted_by(|a, b| a.row.revision < b.row.revision));
    for (revision, value) in acknowledged {
        let told = events.iter().find(|event| event.row.revision == revision).expect("it is told");
        assert_eq!(told.row.value, value);
    }
}

/// Passes bytes on. Armed, it cuts the connection that commits: before the server hears of it, or
/// after the server has answered.
struct Proxy {
    port: u16,
    cut_before: Arc<AtomicBool>,
    cut_after: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(to: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let (cut_before, cut_after) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (before, after) = (cut_before.clone(), cut_after.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, to, before.clone(), after.clone()));
            }
        });
        Self { port, cut_before, cut_after }
    }
}

async fn pass(mut client: TcpStream, to: u16, before: Arc<AtomicBool>, after: Arc<AtomicBool>) {
    let mut server = TcpStream::connect(("127.0.0.1", to)).await.expect("connect");
    let (mut up, mut down) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            n = client.read(&mut up) => {
                let Ok(n @ 1..) = n else { return };
                let commits = up[..n].windows(7).any(|bytes| bytes == b"COMMIT\0");
                if commits && before.swap(false, Ordering::Relaxed) {
                    return;
                }
                if server.write_all(&up[..n]).await.is_err() {
                    return;
                }
                if commits && after.swap(false, Ordering::Relaxed) {
                    let mut heard = Vec::new();
                    while !heard.windows(7).any(|bytes| bytes == b"COMMIT\0") {
                        let n = server.read(&mut down).await.expect("an answer");
                        assert_ne!(n, 0, "the server commits");
                        heard.extend_from_slice(&down[..n]);
                    }
                    return;
                }
            }
            n = server.read(&mut down) => {
                let Ok(n @ 1..) = n else { return };
                if client.write_all(&down[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The answer to a COMMIT is lost: the outcome is unknown, and the watch tells the truth once.
#[tokio::test]
async fn a_lost_answer_is_unknown() {
    let url = cluster::fresh_database();
    let port = cluster::shared().port;
    let proxy = Proxy::start(port).await;
    let store = open(&url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port))).await;
    let start = put(&store, "/a", "0").await;
    let mut watcher = watch(&store, start.next()).await;
    let mut expected = Vec::new();
    for (i, is_written) in [(1, true), (2, false), (3, true)] {
        let cut = if is_written { &proxy.cut_after } else { &proxy.cut_before };
        cut.store(true, Ordering::Relaxed);
        let unknown = try_put(&store, "/a", &i.to_string()).await;
        assert!(matches!(unknown, Err(Error::Unknown(_))), "{unknown:?}");
        let next = format!("after {i}");
        put_once_up(&store, "/a", &next).await;
        expected.extend(is_written.then(|| i.to_string()));
        expected.push(next);
    }
    let last = store.head().await.expect("head");
    let events = events_up_to(&mut watcher, last).await;
    let values: Vec<_> =
        events.iter().map(|e| String::from_utf8_lossy(&e.row.value).into_owned()).collect();
    assert_eq!(values, expected);
}

/// Sessions are ended over and over while two stores write: all that is acknowledged is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_may_end_at_any_time() {
    let url = cluster::fresh_database();
    let stores = [open(&url).await, open(&url).await];
    let start = put(&stores[0], "/start", "").await;
    let mut watchers =
        [watch(&stores[0], start.next()).await, watch(&stores[1], start.next()).await];
    let writers = [0, 1, 2, 3].map(|task| {
        let store = stores[task % 2].clone();
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            while acknowledged.len() < 60 {
                match try_put(&store, &format!("/{task}"), "x").await {
                    Ok(revision) => acknowledged.push(revision),
                    Err(Error::Unavailable { .. } | Error::Unknown(_)) => {
                        tokio::task::yield_now().await
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            acknowledged
        })
    });
    let client = raw(&url).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
         AND datname = current_database() AND application_name = 'ferroplane'";
    for i in 1..=6 {
        let n = format!("SELECT count(*) FROM kine HAVING count(*) > {}", 20 * i);
        while client.query_opt(&n, &[]).await.expect("count").is_none() {
            tokio::task::yield_now().await;
        }
        client.batch_execute(end).await.expect("end the sessions");
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.expect("the writer ends"));
    }
    acknowledged.sort();
    let n_distinct = acknowledged.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
    assert_eq!(n_distinct, acknowledged.len());
    let last = put_once_up(&stores[0], "/end", "").await;
    let one = events_up_to(&mut watchers[0], last).await;
    let two = events_up_to(&mut watchers[1], last).await;
    assert_eq!(one, two);
    let told: Vec<_> = one.iter().map(|event| event.row.revision).collect();
    assert!(told.is_sorted_by(|a, b| a < b));
    assert!(acknowledged.iter().all(|revision| told.binary_search(revision).is_ok()));
}

/// A server whose commits are not durable by default is told to make ours so, in every session
/// before its first commit.
#[tokio::test]
async fn commits_are_durable_whatever_the_default() {
    let settings = ["synchronous_commit=off", "log_statement=all", "log_line_prefix=%p|"];
    let cluster = Cluster::start(&settings);
    let store = open(&cluster.fresh_database()).await;
    put(&store, "/a", "1").await;
    store.close().await;
    cluster.shut_down();
    let log = std::fs::read_to_string(cluster.folder().join("log")).expect("read the log");
    let session = |line: &str| line.split('|').next().unwrap_or_default().to_owned();
    let first = |what: &str, pid: &str| {
        log.lines().position(|line| line.contains(what) && session(line) == pid)
    };
    let writers: Vec<_> =
        log.lines().filter(|line| line.contains("INSERT INTO kine (id")).map(session).collect();
    assert!(!writers.is_empty(), "{log}");
    for pid in writers {
        let set = first("SET synchronous_commit = on", &pid).expect("it is set");
        assert!(set < first("INSERT INTO kine (id", &pid).expect("it inserts"));
    }
}

/// A standby is refused, and not used when the server has become one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_never_used() {
    let cluster = Cluster::start(&[]);
    let url = cluster.fresh_database();
    let store = open(&url).await;
    put(&store, "/a", "1").await;
    cluster.shut_down();
    cluster.hand_over("data/standby.signal", "");
    cluster.up();
    assert!(
        raw(&url)
            .await
            .query_one("SELECT pg_is_in_recovery()", &[])
            .await
            .expect("ask")
            .get::<_, bool>(0)
    );
    assert!(matches!(store.head().await, Err(Error::Unavailable { .. })));
    assert!(matches!(try_put(&store, "/a", "2").await, Err(Error::Unavailable { .. })));
    assert!(matches!(store.get("/a", Revision::ZERO).await, Err(Error::Unavailable { .. })));
    let refused = PostgresStore::open(dsn(&url), tuning(0)).await.err().expect("it is a standby");
    assert!(refused.to_string().contains("it is a standby"), "{refused}");
}

/// A server that comes back without what it acknowledged is not gone on with: its revisions would
/// be given out twice.
#[tokio::test]
async fn lost_writes_end_the_store() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    put(&store, "/a", "1").await;
    put(&store, "/a", "2").await;
    let client = raw(&url).await;
    let lose = "DELETE FROM kine WHERE id = (SELECT max(id) FROM kine); \
         SELECT setval('kine_id_seq', (SELECT max(id) FROM kine)); \
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
         AND datname = current_database()";
    client.batch_execute(lose).await.expect("lose a row");
    let ended = async {
        loop {
            match try_put(&store, "/a", "3").await {
                Err(Error::Unavailable { what, .. }) if what.contains("lost") => return,
                Ok(revision) => panic!("{revision} is given out again"),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends");
}
