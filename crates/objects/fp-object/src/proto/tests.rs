//! The engine over a message of its own; the built-in messages are tested in fp-builtin.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::Object;

static OWNER: Message = Message {
    name: "test.v1.Owner",
    type_meta: false,
    fields: &[
        Field::plain(1, 0, "name", Kind::String),
        Field::list(2, 1, "children", Kind::Message(&OWNER)).omit(),
    ],
};

static INLINE: Message = Message {
    name: "test.v1.Inline",
    type_meta: false,
    fields: &[Field::plain(1, 0, "scope", Kind::String).omit()],
};

static THING: Message = Message {
    name: "test.v1.Thing",
    type_meta: true,
    fields: &[
        Field::plain(1, 3, "", Kind::Message(&INLINE)),
        Field::plain(2, 1, "made", Kind::Time),
        Field::pointer(3, 2, "seen", Kind::MicroTime).omit(),
        Field::plain(4, 4, "count", Kind::Int32),
        Field::pointer(5, 5, "limit", Kind::Double).omit(),
        Field::map(6, 6, "data", Kind::Bytes).omit(),
        Field::map(7, 7, "extra", Kind::Strings).omit(),
        Field::list(8, 8, "sizes", Kind::Int64).omit(),
        Field::plain(9, 9, "owner", Kind::Message(&OWNER)).omit(),
        Field::pointer(10, 10, "any", Kind::RawExtension).omit(),
        Field::plain(11, 11, "quantity", Kind::Quantity).omit(),
        Field::plain(12, 12, "verbs", Kind::Strings),
        Field::plain(200, 13, "far", Kind::Bool).omit(),
    ],
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

/// A JSON object in; its conformed form, unknown members, wire form and Go's JSON out.
fn check(object: serde_json::Value, expected: Expect) {
    let object = object.as_object().expect("an object").clone();
    let mut unknown = Vec::new();
    let text = match conform(&THING, &object, &mut unknown) {
        Ok(conformed) => {
            let wire = encode(&THING, &conformed).expect("what conforms encodes");
            let mut back = decode(&THING, &wire).expect("what was encoded decodes");
            for key in ["kind", "apiVersion"] {
                back.extend(conformed.get(key).map(|v| (key.to_owned(), v.clone())));
            }
            assert_eq!(back, conformed);
            let json = String::from_utf8(to_json(&THING, &conformed)).expect("JSON is UTF-8");
            format!("{json}\n{}\nunknown: {unknown:?}", hex(&wire))
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn zero_values_are_written_as_go_writes_them() {
    check(
        json!({}),
        expect![[r#"
            {"made":null,"count":0,"verbs":null}
            0a 02 0a 00 12 00 20 00 4a 02 0a 00 5a 03 0a 01 30 c0 0c 00
            unknown: []"#]],
    );
}

#[test]
fn values_take_their_printed_form() {
    check(
        json!({
            "kind": "Thing", "apiVersion": "test/v1", "scope": "a<b",
            "made": "2026-11-29T23:13:52.9+02:00", "seen": "2026-11-29T21:13:52Z",
            "count": 2.0, "limit": 1.50, "data": {"b": "AQ==", "a": ""}, "extra": {"k": ["v"], "n": null},
            "sizes": [-1, 300], "owner": {"name": "x", "children": [{}, null]},
            "any": {"z": 1, "a": null}, "quantity": 5, "verbs": ["get"], "far": true, "new": 1,
        }),
        expect![[r#"
            {"kind":"Thing","apiVersion":"test/v1","made":"2026-11-29T21:13:52Z","seen":"2026-11-29T21:13:52.000000Z","scope":"a\u003cb","count":2,"limit":1.5,"data":{"a":"","b":"AQ=="},"extra":{"k":["v"],"n":null},"sizes":[-1,300],"owner":{"name":"x","children":[{"name":""},{"name":""}]},"any":{"a":null,"z":1},"quantity":"5","verbs":["get"],"far":true}
            0a 05 0a 03 61 3c 62 12 08 08 90 ab b2 d8 06 10 00 1a 08 08 90 ab b2 d8 06 10 00 20 02 29 00 00 00 00 00 00 f8 3f 32 05 0a 01 61 12 00 32 06 0a 01 62 12 01 01 3a 08 0a 01 6b 12 03 0a 01 76 3a 03 0a 01 6e 40 ff ff ff ff ff ff ff ff ff 01 40 ac 02 4a 0b 0a 01 78 12 02 0a 00 12 02 0a 00 52 12 0a 10 7b 22 61 22 3a 6e 75 6c 6c 2c 22 7a 22 3a 31 7d 5a 03 0a 01 35 62 05 0a 03 67 65 74 c0 0c 01
            unknown: ["new"]"#]],
    );
}

#[test]
fn wrong_types_are_gos_errors() {
    for (object, expected) in [
        (
            json!({"count": "1"}),
            expect!["json: cannot unmarshal string into Go struct field Thing.count of type int32"],
        ),
        (
            json!({"count": 2147483648u32}),
            expect![
                "json: cannot unmarshal number 2147483648 into Go struct field Thing.count of type int32"
            ],
        ),
        (
            json!({"sizes": [1.5]}),
            expect![
                "json: cannot unmarshal number 1.5 into Go struct field Thing.sizes of type int64"
            ],
        ),
        (
            json!({"owner": {"children": [{"name": 1}]}}),
            expect![
                "json: cannot unmarshal number into Go struct field Owner.owner.children.name of type string"
            ],
        ),
        (
            json!({"owner": {"children": {}}}),
            expect![
                "json: cannot unmarshal object into Go struct field Owner.owner.children of type []v1.Owner"
            ],
        ),
        (
            json!({"data": []}),
            expect![
                "json: cannot unmarshal array into Go struct field Thing.data of type map[string][]uint8"
            ],
        ),
        (
            json!({"extra": {"k": "v"}}),
            expect![
                "json: cannot unmarshal string into Go struct field Thing.extra of type []string"
            ],
        ),
        (
            json!({"data": {"k": "not base64!"}}),
            expect!["data.k: illegal base64 data at input byte 3"],
        ),
        (
            json!({"made": "yesterday"}),
            expect![[
                r#"made: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#
            ]],
        ),
    ] {
        check(object, expected);
    }
}

#[test]
fn unknown_members_are_named_with_their_path() {
    let object =
        json!({"owner": {"x": 1, "children": [{"name": "a"}, {"y": {"z": 1}}]}, "spec": {}});
    let mut unknown = Vec::new();
    conform(&THING, object.as_object().unwrap(), &mut unknown).unwrap();
    expect![[r#"["owner.children[1].y", "owner.x", "spec"]"#]].assert_eq(&format!("{unknown:?}"));
}

#[test]
fn hostile_bytes_are_errors() {
    let deep = {
        let mut bytes = Vec::new();
        for _ in 0..=DEPTH_MAX {
            let mut outer = Vec::new();
            wire::put_bytes(&mut outer, 2, &bytes);
            bytes = outer;
        }
        bytes
    };
    let check = |message, bytes: &[u8], expected: Expect| {
        let text = match decode(message, bytes) {
            Ok(object) => serde_json::to_string(&object).unwrap(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&text);
    };
    check(&OWNER, b"\x0a", expect!["unexpected EOF"]);
    check(&OWNER, b"\x0a\x05ab", expect!["unexpected EOF"]);
    check(&OWNER, b"\x0a\xff\xff\xff\xff\x07", expect!["unexpected EOF"]);
    check(
        &OWNER,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        expect!["proto: integer overflow"],
    );
    check(
        &OWNER,
        b"\x08\x01",
        expect!["proto: wrong wireType = 0 for field name of test.v1.Owner"],
    );
    check(&OWNER, b"\x00\x01", expect!["proto: illegal tag 0"]);
    check(&OWNER, b"\x0b\x0c", expect!["proto: illegal tag 11"]);
    check(&OWNER, &deep, expect!["exceeded the nesting limit of 200 messages"]);
    // Unknown fields of every wire type are passed over; invalid UTF-8 shows as Go shows it.
    let unknown = b"\x18\x01\x21\0\0\0\0\0\0\0\0\x2a\x01x\x35\0\0\0\0\x0a\x01\xff";
    check(&OWNER, unknown, expect![[r#"{"name":"�"}"#]]);
    // A packed list, and times beyond the calendar.
    check(
        &THING,
        b"\x42\x03\x01\xac\x02",
        expect![[r#"{"count":0,"made":null,"sizes":[1,300],"verbs":null}"#]],
    );
    check(
        &THING,
        b"\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x00",
        expect!["unexpected EOF"],
    );
    check(
        &THING,
        b"\x12\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x00",
        expect![[r#"{"count":0,"made":null,"verbs":null}"#]],
    );
}

#[test]
fn envelope_lists_and_frames() {
    let raw = encode(&OWNER, json!({"name": "a"}).as_object().unwrap()).unwrap();
    let wrapped = wrap("test/v1", "Owner", &raw);
    expect!["6b 38 73 00 0a 10 0a 07 74 65 73 74 2f 76 31 12 05 4f 77 6e 65 72 12 03 0a 01 61 1a 00 22 00"]
        .assert_eq(&hex(&wrapped));
    let unknown = unwrap(&wrapped).unwrap();
    assert_eq!((unknown.api_version, unknown.kind, unknown.raw), ("test/v1", "Owner", &raw[..]));
    for (bytes, expected) in [
        (
            &b"{}"[..],
            expect![
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            ],
        ),
        (b"k8s\0\x12\x05a", expect!["unexpected EOF"]),
        (
            b"k8s\0\x1a\x04gzip",
            expect![[r#"content encoding "gzip" is not supported in a protobuf envelope"#]],
        ),
        (
            b"k8s\0\x10\x01",
            expect![
                "proto: wrong wireType = 0 for field  of k8s.io.apimachinery.pkg.runtime.Unknown"
            ],
        ),
    ] {
        expected.assert_eq(&unwrap(bytes).unwrap_err().to_string());
    }

    let list = encode_list(&OWNER, &Object::new(), [&raw[..], &raw[..]].into_iter()).unwrap();
    expect!["0a 02 0a 00 12 03 0a 01 61 12 03 0a 01 61"].assert_eq(&hex(&list));

    let frames = [watch_event("ADDED", &wrapped), watch_event("BOOKMARK", b"x")].concat();
    let (first, rest) = unframe(&frames).unwrap().expect("a whole frame");
    assert_eq!(unwrap_watch_event(first).unwrap(), ("ADDED", &wrapped[..]));
    let (second, rest) = unframe(rest).unwrap().expect("a whole frame");
    assert_eq!((unwrap_watch_event(second).unwrap(), rest), (("BOOKMARK", &b"x"[..]), &b""[..]));
    assert_eq!(unframe(&frames[..9]).unwrap(), None);
    assert_eq!(unframe(&[0xff; 8]), Err(Error::Frame(0xffff_ffff)));
}
