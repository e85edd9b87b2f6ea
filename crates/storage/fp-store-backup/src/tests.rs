//! What is written is read again, and nothing that is wrong goes unseen.

use std::collections::BTreeMap;

use bytes::Bytes;
use expect_test::{Expect, expect};
use fp_store::Row;
use proptest::prelude::*;

use super::*;

fn header(n_keys: u64) -> Header {
    let (source, prefix) = ("sqlite".into(), "/r".into());
    Header { source, revision: Revision(100), n_keys, prefix, taken_secs: 5 }
}

fn row(key: &str, value: &[u8], created: i64, revision: i64) -> Row {
    let value = Bytes::copy_from_slice(value);
    let (created, revision) = (Revision(created), Revision(revision));
    Row { key: key.into(), value, revision, created, lease_ttl_secs: 7 }
}

fn written(rows: &[Row]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header(rows.len() as u64)).expect("a header");
    rows.iter().for_each(|row| writer.push(row).expect("a row"));
    writer.finish().expect("a trailer").0
}

fn read(bytes: &[u8]) -> Result<(Header, Vec<Row>), Error> {
    let mut reader = Reader::open(bytes)?;
    let mut rows = Vec::new();
    while let Some(more) = reader.next_rows()? {
        rows.extend(more);
    }
    Ok((reader.header().clone(), rows))
}

fn small() -> Vec<Row> {
    vec![row("/r/a", b"one", 1, 1), row("/r/b", b"", 2, 99), row("/r/c", b"three", 3, 100)]
}

fn faults(bytes: &[u8]) -> String {
    let found = check(bytes, &mut |_| {}).expect("readable");
    found.faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let good = written(&small());
    assert_eq!(read(&good).expect("whole"), (header(3), small()));
    assert_eq!(faults(&good), "");
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(read(&bad).is_err(), "bit {bit} of byte {at}");
            assert_ne!(faults(&bad), "", "bit {bit} of byte {at}");
        }
        assert!(read(&good[..at]).is_err(), "cut at {at}");
        assert_ne!(faults(&good[..at]), "", "cut at {at}");
    }
}

fn check_faults(bytes: &[u8], want: Expect) {
    want.assert_eq(&faults(bytes));
}

#[test]
fn faults_are_named() {
    let good = written(&small());
    check_faults(b"SQLite format 3\0", expect!["it is not a backup of Ferroplane\n"]);
    check_faults(b"", expect!["it is not a backup of Ferroplane\n"]);
    check_faults(
        b"ferroplane-backup 2\nwhatever",
        expect![[r#"
            it has format version 2, and this program reads up to 1: use a newer one
        "#]],
    );
    check_faults(
        &good[..good.len() - 1],
        expect![[r#"
            it ends at byte 243, before its trailer: it is not complete
        "#]],
    );
    check_faults(
        &[&good[..], b"x"].concat(),
        expect![[r#"
            block 2 at byte 190: bytes follow it
        "#]],
    );
    let at = good.windows(5).position(|w| w == b"three").expect("the value");
    let mut bad = good.clone();
    bad[at] = b'T';
    // The rest is looked at too.
    check_faults(
        &bad,
        expect![[r#"
            block 1 at byte 73: its checksum does not match
            block 2 at byte 190: the SHA-256 of the file does not match
        "#]],
    );
}

#[test]
fn a_writer_takes_only_what_it_announced() {
    let given = |rows: &[Row], n| {
        let mut writer = Writer::new(Vec::new(), header(n)).expect("a header");
        let pushed = rows.iter().try_for_each(|row| writer.push(row));
        pushed.and_then(|()| writer.finish().map(drop)).expect_err("refused").to_string()
    };
    let [a, b, c] = &small()[..] else { unreachable!("three rows") };
    let all = [
        given(&[b.clone(), a.clone()], 2),
        given(&[a.clone(), a.clone()], 2),
        given(&[a.clone(), row("/x", b"", 1, 1)], 2),
        given(&[row("/r", b"", 1, 101)], 1),
        given(&[a.clone(), c.clone()], 3),
    ];
    expect![[r#"
        the keys given are not those announced: /r/a is out of order
        the keys given are not those announced: /r/a is out of order
        the keys given are not those announced: /x was not selected
        the keys given are not those announced: /r was not selected
        the keys given are not those announced: 2 keys instead of 3"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn a_file_is_whole_or_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b");
    let names = || std::fs::read_dir(folder.path()).expect("read").count();
    drop(BackupFile::create(&path).expect("create"));
    assert_eq!(names(), 0);
    let mut writer =
        Writer::new(BackupFile::create(&path).expect("create"), header(3)).expect("a header");
    small().iter().for_each(|row| writer.push(row).expect("a row"));
    assert!(!path.exists());
    let (file, n_bytes) = writer.finish().expect("a trailer");
    file.keep().expect("keep");
    assert_eq!(names(), 1);
    assert_eq!(std::fs::read(&path).expect("read"), written(&small()));
    assert_eq!(n_bytes, written(&small()).len() as u64);
    assert!(BackupFile::create(&path).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        keys in prop::collection::btree_map("/r[^\0]{0,20}", prop::collection::vec(any::<u8>(), 0..90_000), 0..12),
    ) {
        let keys: BTreeMap<String, Vec<u8>> = keys;
        let rows: Vec<_> = keys.iter().map(|(key, value)| row(key, value, 1, 100)).collect();
        let bytes = written(&rows);
        prop_assert_eq!(read(&bytes).expect("whole"), (header(rows.len() as u64), rows));
    }
}
