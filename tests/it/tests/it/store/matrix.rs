//! The table of `docs/guide/store.md` is true: every method that it says is not served answers
//! `Unimplemented`, and every method that it says is served is named by a test of this folder.

use super::*;

const GUIDE: &str = include_str!("../../../../../docs/guide/store.md");
const SERVED_BY_TESTS: &str =
    concat!(include_str!("../store.rs"), include_str!("watch.rs"), include_str!("flags.rs"));

/// etcdctl's command for a method.
const COMMANDS: &[(&str, &str)] = &[
    ("Range", "get "),
    ("Put", "put "),
    ("DeleteRange", "del "),
    ("Txn", "txn"),
    ("Compact", "compact "),
    ("Watch", "watch "),
    ("LeaseGrant", "lease grant 5"),
    ("LeaseRevoke", "lease revoke 5"),
    ("LeaseKeepAlive", "lease keep-alive --once 5"),
    ("LeaseTimeToLive", "lease timetolive 5"),
    ("LeaseLeases", "lease list"),
    ("MemberList", "member list"),
    ("MemberAdd", "member add x --peer-urls=http://localhost:1"),
    ("MemberRemove", "member remove 1"),
    ("MemberUpdate", "member update 1 --peer-urls=http://localhost:1"),
    ("MemberPromote", "member promote 1"),
    ("Alarm", "alarm "),
    ("Status", "endpoint status"),
    ("Defragment", "defrag"),
    ("HashKV", "endpoint hashkv"),
    ("Snapshot", "snapshot save x.db"),
    ("MoveLeader", "move-leader 1"),
    ("AuthEnable", "auth enable"),
    ("AuthStatus", "auth status"),
    ("UserList", "user list"),
    ("RoleList", "role list"),
];

#[test]
fn the_guide_says_what_is_so() {
    let store = Store::start(&[]);
    let rows = GUIDE.lines().filter(|line| line.starts_with("| `"));
    let (mut n_served, mut n_not) = (0, 0);
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (methods, served) = (cells[1], cells[2]);
        for method in methods.split(',').map(|method| method.trim().trim_matches('`')) {
            let Some((_, command)) = COMMANDS.iter().find(|(name, _)| *name == method) else {
                continue;
            };
            if served == "no" {
                let said = store.run(command);
                assert!(
                    said.contains("Unimplemented") || said.contains("is not served"),
                    "{method}: {said}"
                );
                n_not += 1;
            } else {
                assert!(
                    SERVED_BY_TESTS.contains(command.trim_end_matches('5')),
                    "no test of {method}"
                );
                n_served += 1;
            }
        }
    }
    assert!(n_served >= 10 && n_not >= 10, "{n_served} served, {n_not} not");
}
