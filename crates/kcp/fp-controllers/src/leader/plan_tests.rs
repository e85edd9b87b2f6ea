//! Leases in, decisions out.

use expect_test::{Expect, expect};

use super::*;

fn config() -> Config {
    Config {
        identity: "me".into(),
        namespace: "kube-system".into(),
        name: "kcp-controllers".into(),
        lease_duration: Duration::from_secs(8),
        renew_deadline: Duration::from_secs(5),
        retry_period: Duration::from_secs(2),
    }
}

/// A Lease whose times are `year`'s: that of a host whose clock is wrong.
fn lease(holder: &str, seconds: u64, year: u32) -> Object {
    let at = format!("{year}-01-01T00:00:00.000000Z");
    let mut lease = new(&config(), "kcp-controllers");
    let spec = json!({
        "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
        "acquireTime": at, "renewTime": at,
    });
    lease.insert("spec".into(), spec);
    lease
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn one_that_waits() {
    let other = |year| Some(lease("other", 15, year));
    let cases = [
        ("no lease", None, 0.0),
        ("released", Some(lease("", 1, 2026)), 0.0),
        ("its own, of a write whose outcome it did not learn", Some(lease("me", 8, 2026)), 0.0),
        ("held", other(2026), 0.0),
        ("held, for as long as its holder says and not as we do", other(2026), 14.5),
        ("run out", other(2026), 15.0),
        ("held by one whose clock is behind", other(1999), 1.0),
        ("run out by one whose clock is ahead", other(2099), 15.0),
        ("without a duration", Some(lease("other", 0, 2026)), 0.0),
    ];
    let lines = cases.map(|(what, lease, ago)| {
        format!("{what}: {:?}\n", stand(&config(), lease.as_ref(), secs(ago)))
    });
    expect![[r#"
        no lease: Acquire
        released: Acquire
        its own, of a write whose outcome it did not learn: Acquire
        held: Wait(15s)
        held, for as long as its holder says and not as we do: Wait(500ms)
        run out: Acquire
        held by one whose clock is behind: Wait(14s)
        run out by one whose clock is ahead: Acquire
        without a duration: Acquire
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn one_that_leads() {
    let own = || Some(lease("me", 8, 2026));
    let cases = [
        ("just renewed", own(), 0.0, 0.0),
        ("due", own(), 2.0, 2.0),
        ("an attempt failed", own(), 4.0, 1.0),
        ("an attempt failed, the deadline comes first", own(), 4.5, 0.5),
        ("late", own(), 5.0, 0.5),
        ("paused for long, nobody came", own(), 500.0, 500.0),
        ("paused, and another came", Some(lease("other", 8, 2026)), 500.0, 500.0),
        ("another came", Some(lease("other", 8, 1999)), 0.0, 0.0),
        ("somebody emptied it", Some(lease("", 1, 2026)), 1.0, 1.0),
        ("somebody deleted it", None, 1.0, 1.0),
        ("the epoch was deleted", own(), 1.0, 1.0),
    ];
    let lines = cases.map(|(what, lease, renewed, tried)| {
        format!(
            "{what}: {:?}\n",
            hold(
                &config(),
                lease.as_ref(),
                what != "the epoch was deleted",
                secs(renewed),
                secs(tried)
            )
        )
    });
    expect![[r#"
        just renewed: Wait(2s)
        due: Renew
        an attempt failed: Wait(1s)
        an attempt failed, the deadline comes first: Wait(500ms)
        late: Lost(Late)
        paused for long, nobody came: Lost(Late)
        paused, and another came: Lost(Taken("other"))
        another came: Lost(Taken("other"))
        somebody emptied it: Lost(Taken(""))
        somebody deleted it: Lost(Deleted)
        the epoch was deleted: Lost(Epoch)
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn what_is_written() {
    let check = |lease: &Object, want: Expect| {
        let spec = serde_json::to_string(lease.get("spec").expect("a spec")).expect("JSON");
        want.assert_eq(&spec);
    };
    let now = "2026-06-01T00:00:00.000000Z";
    let first = acquired(&config(), None, now);
    check(
        &first,
        expect![[
            r#"{"acquireTime":"2026-06-01T00:00:00.000000Z","holderIdentity":"me","leaseDurationSeconds":8,"leaseTransitions":0,"renewTime":"2026-06-01T00:00:00.000000Z"}"#
        ]],
    );
    let renewed = renewed(&first, "2026-06-01T00:00:02.000000Z");
    check(
        &renewed,
        expect![[
            r#"{"acquireTime":"2026-06-01T00:00:00.000000Z","holderIdentity":"me","leaseDurationSeconds":8,"leaseTransitions":0,"renewTime":"2026-06-01T00:00:02.000000Z"}"#
        ]],
    );
    let released = released(&renewed, "2026-06-01T00:00:03.000000Z");
    check(
        &released,
        expect![[
            r#"{"acquireTime":"2026-06-01T00:00:03.000000Z","holderIdentity":"","leaseDurationSeconds":1,"leaseTransitions":0,"renewTime":"2026-06-01T00:00:03.000000Z"}"#
        ]],
    );
    let again = acquired(&config(), Some(&released), "2026-06-01T00:00:04.000000Z");
    check(
        &again,
        expect![[
            r#"{"acquireTime":"2026-06-01T00:00:04.000000Z","holderIdentity":"me","leaseDurationSeconds":8,"leaseTransitions":1,"renewTime":"2026-06-01T00:00:04.000000Z"}"#
        ]],
    );
    let unsure = acquired(&config(), Some(&again), "2026-06-01T00:00:05.000000Z");
    check(
        &unsure,
        expect![[
            r#"{"acquireTime":"2026-06-01T00:00:04.000000Z","holderIdentity":"me","leaseDurationSeconds":8,"leaseTransitions":1,"renewTime":"2026-06-01T00:00:05.000000Z"}"#
        ]],
    );
    let one = epoch(&config(), None, &first);
    check(
        &one,
        expect![[
            r#"{"acquireTime":"2026-06-01T00:00:00.000000Z","holderIdentity":"me","leaseTransitions":0}"#
        ]],
    );
    // A renewal changes no epoch; leading a second time does.
    assert_eq!(epoch(&config(), Some(&one), &renewed), one);
    assert_ne!(epoch(&config(), Some(&one), &again), one);
}
