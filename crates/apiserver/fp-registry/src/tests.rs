//! The backend over the in-memory store and over SQLite.

mod rig;

use fp_base::{ClusterScope, Revision};
use fp_informer::Entry;
use fp_store::MemoryStore;
use rig::{Rig, collect, object, object_key, rigs, root, show, show_all, show_change, show_key};

use crate::{Backend, Error, Freshness, Guard, ListQuery, Place, Step, WatchFrom};

const MUCH: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_read_what_they_wrote() {
    for rig in rigs(MUCH).await {
        let rig = std::sync::Arc::new(rig);
        let writer = |n: usize| {
            let rig = rig.clone();
            tokio::spawn(async move {
                for i in 0..10 {
                    let key = format!("root/n{n}/c{i}");
                    let mut entry = rig.create(&key, "1").await;
                    for text in ["2", "3"] {
                        entry = rig.update(&entry, text).await;
                        let read =
                            rig.get(&key, Freshness::Newest).await.unwrap().expect("it exists");
                        assert_eq!((read.revision, &read.json), (entry.revision, &entry.json));
                        assert_eq!(show(&read), format!("c{i}={text}"));
                    }
                    if i % 2 == 0 {
                        let last = rig.delete(&entry).await;
                        assert!(last.revision > entry.revision);
                        assert_eq!(show(&last), format!("c{i}=3"));
                        assert!(rig.get(&key, Freshness::Newest).await.unwrap().is_none());
                    }
                }
            })
        };
        let writers: Vec<_> = (0..8).map(writer).collect();
        for writer in writers {
            writer.await.expect("the writer ends well");
        }
        let page = rig.list(&root(), Freshness::Newest, None, 0).await.unwrap();
        assert_eq!((page.entries.len(), page.more, page.remaining), (40, false, Some(0)));
        assert_eq!(page.revision, rig.store.head().await.unwrap());
        let place =
            Place { info: &rig.configmaps, scope: &root(), namespace: Some("n3"), mixed: false };
        assert_eq!(rig.backend.count(place).await.unwrap(), 5);
        assert_eq!(rig.backend.counts().undecodable(), 0);
    }
}

/// What a refused write says.
fn refusal(result: Result<std::sync::Arc<Entry>, Error>) -> String {
    match result {
        Ok(entry) => format!("ok {}", show(&entry)),
        Err(Error::Conflict(Some(current))) => format!("conflict with {}", show(&current)),
        Err(Error::Conflict(None)) => "conflict, gone".into(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn conflicts_carry_what_stands_in_the_way() {
    for rig in rigs(MUCH).await {
        let (backend, info) = (&rig.backend, &rig.configmaps);
        let key = object_key("root/n/a");
        let (one, two) = (object("root/n/a", "1"), object("root/n/a", "2"));
        let first = rig.create("root/n/a", "1").await;
        let second = rig.update(&first, "2").await;
        let stale = first.revision;

        let exists = backend.create(info, &key, &one, &[]).await;
        assert_eq!(refusal(exists), "object exists already");
        let update = backend.update(info, &key, stale, &one, &[]).await;
        assert_eq!(refusal(update), "conflict with a=2");
        let delete = backend.delete(info, &key, stale, &[]).await;
        assert_eq!(refusal(delete), "conflict with a=2");

        let guard = |revision| Guard { info: info.clone(), key: key.clone(), revision };
        let other = object_key("root/n/b");
        let guarded = backend.create(info, &other, &one, &[guard(stale)]).await;
        assert_eq!(refusal(guarded), "guard does not hold");
        let guarded =
            backend.create(info, &other, &object("root/n/b", "1"), &[guard(second.revision)]).await;
        assert_eq!(refusal(guarded), "ok b=1");

        rig.delete(&second).await;
        let update = backend.update(info, &key, second.revision, &two, &[]).await;
        assert_eq!(refusal(update), "conflict, gone");
        let delete = backend.delete(info, &key, second.revision, &[]).await;
        assert_eq!(refusal(delete), "conflict, gone");
        let bad = crate::key(&key.cluster, "n", "a/b");
        assert!(matches!(backend.create(info, &bad, &one, &[]).await, Err(Error::Codec(_))));
        let large = object("root/n/large", &"x".repeat(2 << 20));
        let refused = backend.create(info, &object_key("root/n/large"), &large, &[]).await;
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
    }
}

#[tokio::test]
async fn a_watch_begins_with_what_exists() {
    for rig in rigs(MUCH).await {
        let a = rig.create("root/n/a", "1").await;
        rig.create("other/n/x", "1").await;
        let from = WatchFrom::Start { fresh: true };
        let mut one = rig.watch(&root(), from).await.unwrap();
        let mut all = rig.watch(&ClusterScope::All, from).await.unwrap();
        assert_eq!(one.delivered(), Revision::ZERO);
        let b = rig.create("root/n/b", "1").await;
        let a = rig.update(&a, "2").await;
        rig.delete(&b).await;
        let last = rig.create("other/n/y", "1").await;
        let last_here = rig.update(&a, "3").await;
        let changes = "Added:b=1 Modified:a=2<1 Deleted:b=1<1";
        assert_eq!(
            collect(&mut one, last_here.revision).await,
            format!("Added:a=1 synced {changes} Modified:a=3<2")
        );
        assert_eq!(
            collect(&mut all, last_here.revision).await,
            format!("Added:x=1 Added:a=1 synced {changes} Added:y=1 Modified:a=3<2")
        );
        assert!(last.revision < last_here.revision);

        // Nothing happens here, and yet a bookmark may say that all is delivered.
        let elsewhere = rig.create("other/n/z", "1").await;
        rig.get("other/n/z", Freshness::Newest).await.unwrap();
        assert_eq!(one.progress(), elsewhere.revision);
    }
}

/// The ring holds a few changes only: the rest comes from the store's log, each change once.
#[tokio::test]
async fn a_watch_falls_back_to_the_log() {
    const LITTLE: usize = 2000;
    for rig in rigs(LITTLE).await {
        let mut slow = rig.watch(&root(), WatchFrom::Start { fresh: true }).await.unwrap();
        let mut entry = rig.create("root/n/a", "0").await;
        let start = entry.revision;
        let mut want = Vec::new();
        for i in 1..50 {
            entry = rig.update(&entry, &i.to_string()).await;
            rig.create(&format!("other/n/x{i}"), "1").await;
            want.push(format!("Modified:a={i}<{}", i - 1));
        }
        rig.get("root/n/a", Freshness::Newest).await.unwrap();
        let floor = rig.backend.table(&rig.configmaps).floor();
        assert!(floor > start, "the ring has overflowed");

        let want = want.join(" ");
        let mut again = rig.watch(&root(), WatchFrom::After(start)).await.unwrap();
        assert_eq!(collect(&mut again, entry.revision).await, want);
        assert_eq!(collect(&mut slow, entry.revision).await, format!("synced Added:a=0 {want}"));

        // Both go on from the ring.
        let entry = rig.update(&entry, "last").await;
        for watch in [&mut again, &mut slow] {
            assert_eq!(collect(watch, entry.revision).await, "Modified:a=last<49");
        }

        rig.store.compact(floor).await.unwrap();
        let gone = rig.watch(&root(), WatchFrom::After(start)).await.err();
        assert!(matches!(gone, Some(Error::Compacted { asked, .. }) if asked == start), "{gone:?}");
    }
}

#[tokio::test]
async fn pages_are_of_one_revision() {
    for rig in rigs(MUCH).await {
        let mut entries = Vec::new();
        for name in ["c", "a-b", "a", "b", "d"] {
            entries.push(rig.create(&format!("root/n/{name}"), "1").await);
        }
        let first = rig.list(&root(), Freshness::Newest, None, 2).await.unwrap();
        assert_eq!(show_all(&first.entries), "a=1 a-b=1");
        assert_eq!((first.more, first.remaining), (true, Some(3)));

        // Unchanged since: memory answers. Changed: history does. The answers are the same.
        let next = Freshness::Exact(first.revision);
        let last = first.entries.last().map(|entry| &entry.key);
        let second = rig.list(&root(), next, last, 2).await.unwrap();
        assert_eq!((show_all(&second.entries), second.remaining), ("b=1 c=1".into(), Some(1)));
        rig.update(&entries[3], "2").await;
        rig.delete(&entries[0]).await;
        rig.create("root/n/bb", "1").await;
        let second = rig.list(&root(), next, last, 2).await.unwrap();
        assert_eq!((show_all(&second.entries), second.more), ("b=1 c=1".into(), true));
        assert_eq!(second.revision, first.revision);
        let last = second.entries.last().map(|entry| &entry.key);
        let third = rig.list(&root(), next, last, 2).await.unwrap();
        assert_eq!((show_all(&third.entries), third.more), ("d=1".into(), false));

        let now = rig.list(&root(), Freshness::Newest, None, 0).await.unwrap();
        assert_eq!(show_all(&now.entries), "a=1 a-b=1 b=2 bb=1 d=1");
        let old = rig.get("root/n/c", next).await.unwrap().expect("it existed then");
        assert_eq!(show(&old), "c=1");

        // A filter sees every object before it counts.
        let filter = |entry: &Entry| entry.key.name.contains('b');
        for freshness in [Freshness::Newest, next] {
            let place = Place {
                info: &rig.configmaps,
                scope: &ClusterScope::All,
                namespace: Some("n"),
                mixed: false,
            };
            let query = ListQuery { freshness, start_after: None, limit: 1, filter: Some(&filter) };
            let page = rig.backend.list(place, query).await.unwrap();
            assert_eq!((show_all(&page.entries), page.more), ("a-b=1".into(), true));
        }

        rig.store.compact(now.revision).await.unwrap();
        let gone = rig.list(&root(), next, None, 0).await.err();
        assert!(matches!(gone, Some(Error::Compacted { .. })), "{gone:?}");
        let exact = rig.list(&root(), Freshness::Exact(now.revision), None, 0).await.unwrap();
        assert_eq!(exact.entries.len(), 5);
    }
}

/// The objects of every definition of a resource, and of definitions to come.
#[tokio::test]
async fn mixed_reads_see_every_definition() {
    for rig in rigs(MUCH).await {
        let [first, second] = &rig.bound_shirts;
        rig.create_shirt(first, "root/n/c").await;
        rig.create_shirt(&rig.shirts, "root/n/c").await;
        let early = rig.create_shirt(&rig.shirts, "other/n/b").await;
        let place = |namespace| rig.mixed(namespace);
        let mut watch =
            rig.backend.watch(place(None), WatchFrom::Start { fresh: true }).await.unwrap();
        let mut here =
            rig.backend.watch(place(Some("n")), WatchFrom::After(early.revision)).await.unwrap();
        rig.create_shirt(second, "root/m/x").await;
        let last = rig.create_shirt(second, "root/n/a").await;
        assert_eq!(
            collect(&mut watch, last.revision).await,
            "Added:b=1 Added:c=1 Added:c=1 synced Added:x=1 Added:a=1"
        );
        assert_eq!(collect(&mut here, last.revision).await, "Added:a=1");
        for freshness in [Freshness::Newest, Freshness::Exact(last.revision)] {
            let whole = rig.list_mixed(freshness, None, 0).await;
            assert_eq!(show_all(&whole.entries), "b=1 x=1 a=1 c=1 c=1");
            let page = rig.list_mixed(freshness, None, 4).await;
            assert_eq!((page.entries.len(), page.more), (5, false), "equal keys stay together");
            let page = rig.list_mixed(freshness, None, 2).await;
            let told = (show_all(&page.entries), page.more, page.remaining);
            assert_eq!(told, ("b=1 x=1".into(), true, Some(3)));
            let rest = rig.list_mixed(freshness, page.entries.last().map(|e| &e.key), 0).await;
            assert_eq!(show_all(&rest.entries), "a=1 c=1 c=1");
        }
        let old = rig.list_mixed(Freshness::Exact(early.revision), None, 0).await;
        assert_eq!(show_all(&old.entries), "b=1 c=1 c=1");
    }
}

/// A revision that memory does not reach is an error, after a while that the paused clock skips.
#[tokio::test(start_paused = true)]
async fn memory_lags_behind() {
    let mut rig = Rig::new(MemoryStore::new(), MUCH).await;
    let entry = rig.create("root/n/a", "1").await;
    for freshness in
        [Freshness::Newest, Freshness::AtLeast(entry.revision), Freshness::Exact(entry.revision)]
    {
        let result = rig.get("root/n/a", freshness).await;
        assert!(
            matches!(result, Err(Error::TooNew { asked: Revision(1), newest: Revision(0) })),
            "{freshness:?}"
        );
    }
    assert!(rig.get("root/n/a", Freshness::Any).await.unwrap().is_none());
    rig.run();
    assert!(rig.get("root/n/a", Freshness::Newest).await.unwrap().is_some());
}

/// The log that the pump must read is compacted: it reads everything again, and so do watches
/// that are behind.
#[tokio::test(start_paused = true)]
async fn the_pump_reads_again_what_it_lost() {
    let mut rig = Rig::new(MemoryStore::new(), MUCH).await;
    let mut watch = rig.watch(&root(), WatchFrom::After(Revision(0))).await.unwrap();
    let a = rig.create("root/n/a", "1").await;
    rig.create("root/n/b", "1").await;
    let deleted = rig.delete(&a).await;
    rig.store.compact(deleted.revision).await.unwrap();
    rig.run();
    let page = rig.list(&root(), Freshness::Newest, None, 0).await.unwrap();
    assert_eq!(show_all(&page.entries), "b=1");
    assert!(matches!(watch.next().await, Err(Error::Compacted { asked: Revision(0), .. })));
    let c = rig.create("root/n/c", "1").await;
    let mut watch = rig.watch(&root(), WatchFrom::After(page.revision)).await.unwrap();
    assert_eq!(collect(&mut watch, c.revision).await, "Added:c=1");
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_passed_over() {
    for rig in rigs(MUCH).await {
        let a = rig.create("root/n/a", "1").await;
        let mut watch = rig.watch(&root(), WatchFrom::After(a.revision)).await.unwrap();
        rig.put_raw("/registry/core/configmaps/root/n/a", b"k8s:enc:aescbc:v1:k:x").await;
        rig.put_raw("/registry/core/configmaps/root/n/b", b"?").await;
        rig.put_raw("/registry/health", b"{}").await;
        let c = rig.create("root/n/c", "1").await;
        let page = rig.list(&root(), Freshness::Newest, None, 0).await.unwrap();
        assert_eq!(show_all(&page.entries), "c=1");
        assert_eq!(collect(&mut watch, c.revision).await, "Deleted:a=1<1 Added:c=1");
        assert_eq!((rig.backend.counts().undecodable(), rig.backend.counts().foreign()), (2, 1));
        let key = object_key("root/n/b");
        let stuck = rig
            .backend
            .update(&rig.configmaps, &key, a.revision, &object("root/n/b", "1"), &[])
            .await;
        assert!(matches!(stuck, Err(Error::Codec(_))), "{stuck:?}");
    }
}

#[tokio::test]
async fn many_are_created_in_one_commit() {
    for rig in rigs(MUCH).await {
        let found = rig.create("root/n/b", "found").await;
        let keys = ["root/n/a", "root/n/b", "other/n/c"];
        let mut objects: Vec<_> =
            keys.map(|key| (rig.configmaps.clone(), object_key(key), object(key, "made"))).into();
        let mut shirt = object("root/n/s", "made");
        shirt.insert("apiVersion".into(), "example.dev/v1".into());
        objects.push((rig.shirts.clone(), object_key("root/n/s"), shirt));
        let made = rig.backend.create_many(&objects).await.unwrap();
        assert_eq!(show_all(&made), "a=made b=found c=made s=made");
        let revisions: Vec<i64> =
            made.iter().map(|entry| entry.revision.0 - found.revision.0).collect();
        assert_eq!(revisions, [1, 0, 2, 3]);
        let again = rig.backend.create_many(&objects).await.unwrap();
        assert_eq!(show_all(&again), show_all(&made));
        assert_eq!(rig.store.head().await.unwrap(), made[3].revision);
        let key = object_key("root/n/s");
        let read = rig
            .backend
            .get(&rig.shirts, &key, Freshness::Newest)
            .await
            .unwrap()
            .expect("it exists");
        assert_eq!(read.json, made[3].json);
        assert_eq!(show_key(&read.key), "root/n/s");
    }
}

/// A second process' view: what is loaded from the store is what was served before.
#[tokio::test]
async fn a_restart_serves_the_same() {
    for rig in rigs(MUCH).await {
        let a = rig.create("root/n/a", "1").await;
        let a = rig.update(&a, "2").await;
        rig.create("other/n/b", "1").await;
        let before = rig.list(&ClusterScope::All, Freshness::Newest, None, 0).await.unwrap();
        let second = Rig::new(rig.store.clone(), MUCH).await;
        let after = second.list(&ClusterScope::All, Freshness::Newest, None, 0).await.unwrap();
        let jsons =
            |page: &crate::Page| page.entries.iter().map(|e| e.json.clone()).collect::<Vec<_>>();
        assert_eq!((jsons(&before), before.revision), (jsons(&after), after.revision));
        // A watch that began before the restart goes on, from the log.
        let mut watch =
            second.watch(&root(), WatchFrom::After(Revision(a.revision.0 - 1))).await.unwrap();
        let steps = watch.next().await.unwrap();
        assert!(
            matches!(&steps[..], [Step::Change(change)] if show_change(change) == "Modified:a=2<1")
        );
    }
}
