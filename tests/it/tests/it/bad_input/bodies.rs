//! Bodies that are no objects, or too much of one.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::*;

#[test]
fn row_01_alias_bombs() {
    let rig = Rig::start();
    let level = |n: usize, item: &str| {
        let items = [item; 9].join(",");
        format!("a{n}: &a{n} [{items}]\n")
    };
    let lists: String = (0..9)
        .map(|n| level(n, &if n == 0 { "x".into() } else { format!("*a{}", n - 1) }))
        .collect();
    let maps: String = (0..9)
        .map(|n| {
            let value = if n == 0 { "x".to_owned() } else { format!("*a{}", n - 1) };
            let members: Vec<String> = (0..9).map(|m| format!("k{m}: {value}")).collect();
            format!("a{n}: &a{n} {{{}}}\n", members.join(", "))
        })
        .collect();
    // Few nodes, but each a long text.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 1000].join(","));
    let itself = "a: &a [*a]\n".to_owned();
    for (what, body) in [("lists", lists), ("maps", maps), ("texts", long), ("itself", itself)] {
        let cost = rig
            .checked_cost(what, "400 [BadRequest]", || rig.put("POST", CONFIG_MAPS, YAML, &body));
        // A body of a MiB is read before it explodes.
        let cpu_ms = if what == "texts" { 30 } else { 10 };
        cost.assert_below(&format!("alias bomb of {what}"), cpu_ms, PEAK_MIB);
    }
}

#[test]
fn row_03_bodies_that_are_too_long() {
    let rig = Rig::start();
    const LIMIT: usize = 3 << 20;
    let cost = rig.checked_cost("3 MiB + 1", "413 [RequestEntityTooLarge]", || {
        rig.put("POST", CONFIG_MAPS, JSON, vec![b' '; LIMIT + 1])
    });
    cost.assert_below("3 MiB + 1", 100, PEAK_MIB);
    // As much as is allowed is read to its end, and only then found to be no object.
    rig.check("3 MiB", &rig.put("POST", CONFIG_MAPS, JSON, vec![b' '; LIMIT]), "400 [BadRequest]");
    for length in ["9223372036854775808", "9223372036854775807", "1099511627776"] {
        let cost = rig.checked_cost(length, "413 [RequestEntityTooLarge]", || {
            let mut raw = rig.server.connect("http/1.1");
            raw.write(&rig.head("POST", &format!("Content-Length: {length}\r\n")));
            raw.answer()
        });
        cost.assert_below(&format!("Content-Length {length}"), 10, PEAK_MIB);
    }
    let cost = rig.checked_cost("endless chunks", "413 [RequestEntityTooLarge]", || {
        let mut raw = rig.server.connect("http/1.1");
        raw.write(&rig.head("POST", "Transfer-Encoding: chunked\r\n"));
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
        // An endless sender stops when nobody reads any more.
        for _ in 0..16 * LIMIT / 0x10000 {
            if !raw.try_write(&chunk) {
                break;
            }
        }
        raw.answer()
    });
    cost.assert_below("endless chunks", 100, PEAK_MIB);
    // A patch and a delete have bodies too.
    let patch = rig.put("PATCH", &format!("{CONFIG_MAPS}/x"), MERGE, vec![b' '; LIMIT + 1]);
    rig.check("a patch", &patch, "413 [RequestEntityTooLarge]");
    let delete = rig.put("DELETE", &format!("{CONFIG_MAPS}/x"), JSON, vec![b' '; LIMIT + 1]);
    rig.check("a delete", &delete, "413 [RequestEntityTooLarge]");
}

/// The server's own deadline is a minute, and the test waits for it.
#[test]
fn row_03_a_body_that_stalls() {
    let rig = Rig::start();
    let stall = |framing: &str, start: &[u8]| {
        let mut raw = rig.server.connect("http/1.1");
        raw.patience(Duration::from_secs(120));
        raw.write(&[rig.head("POST", framing), start.to_vec()].concat());
        raw
    };
    let mut stalled = [
        stall("Content-Length: 100\r\n", b"{\"metadata\":"),
        stall("Transfer-Encoding: chunked\r\n", b"5\r\n{\"met\r\n"),
        // Too long, and not even sent: that is not waited for until the deadline.
        stall("Content-Length: 3145729\r\n", b"{"),
    ];
    rig.server.assert_alive("bodies that stall");
    let answers: Vec<String> = stalled.iter_mut().map(|raw| raw.answer().verdict()).collect();
    assert_eq!(answers, ["504 [Timeout]", "504 [Timeout]", "413 [RequestEntityTooLarge]"]);
    rig.server.assert_alive("bodies that stalled");
}

#[test]
fn row_04_duplicate_and_unknown_fields() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let config_map = |name: &str| {
        format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"a":"first","a":"last"}},"zzz":1}}"#)
    };
    let widget = |name: &str| {
        format!(
            r#"{{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"a":"first","a":"last","zzz":1}}}}"#
        )
    };
    let yaml =
        |name: &str| format!("metadata: {{name: {name}}}\ndata:\n  a: first\n  a: last\nzzz: 1\n");
    type Body<'a> = &'a dyn Fn(&str) -> String;
    let bodies: [(&str, &str, Body<'_>, &str); 3] = [
        (CONFIG_MAPS, JSON, &config_map, "/data/a"),
        (CONFIG_MAPS, YAML, &yaml, "/data/a"),
        (WIDGETS, JSON, &widget, "/spec/a"),
    ];
    for (at, (target, media, body, kept)) in bodies.into_iter().enumerate() {
        let post = |mode: &str| {
            let name = format!("n{at}-{}", mode.to_lowercase());
            rig.put("POST", &format!("{target}?fieldValidation={mode}"), media, body(&name))
        };
        let strict = post("Strict");
        rig.check("Strict", &strict, "400 [BadRequest]");
        for word in ["strict decoding error", "unknown field", "zzz"] {
            assert!(strict.text().contains(word), "{word}: {}", strict.text());
        }
        let warned = post("Warn");
        assert_eq!(warned.code, 201, "{}", warned.text());
        let warnings: Vec<&str> = warned
            .headers
            .iter()
            .filter(|(name, _)| name == "warning")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|w| w.starts_with("299 - ")), "{warnings:?}");
        let ignored = post("Ignore");
        assert_eq!(ignored.code, 201, "{}", ignored.text());
        assert_eq!(ignored.header("warning"), None);
        for made in [warned, ignored] {
            let object = made.json();
            assert_eq!(object.pointer(kept), Some(&json!("last")), "{object}");
            assert!(!made.text().contains("zzz"), "{object}");
        }
        let wrong = post("Nope");
        rig.check("a mode that is none", &wrong, "422 [Invalid]");
    }
}

#[test]
fn row_05_text_that_is_none() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let data = |member: &[u8]| {
        [br#"{"metadata":{"name":"text"},"data":{"#.as_slice(), member, b"}}"].concat()
    };
    let spec = |member: &[u8]| {
        let head = br#"{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"text"},"spec":{"#;
        [head.as_slice(), member, b"}}"].concat()
    };
    let members: [(&str, &[u8]); 8] = [
        ("invalid UTF-8 in a value", b"\"a\":\"\xff\""),
        ("invalid UTF-8 in a key", b"\"\xc3\x28\":\"a\""),
        ("an overlong form", b"\"a\":\"\xc0\xaf\""),
        ("a surrogate in UTF-8", b"\"a\":\"\xed\xa0\x80\""),
        ("a lone high surrogate in a value", br#""a":"\ud800""#),
        ("a lone low surrogate in a value", br#""a":"\udc00""#),
        ("a lone surrogate in a key", br#""\ud800":"a""#),
        ("a surrogate before another character", br#""a":"\ud800\u0041""#),
    ];
    for (what, member) in members {
        rig.check(what, &rig.put("POST", CONFIG_MAPS, JSON, data(member)), "400 [BadRequest]");
        rig.check(what, &rig.put("POST", WIDGETS, JSON, spec(member)), "400 [BadRequest]");
        let patch = [b"{\"data\":{".as_slice(), member, b"}}"].concat();
        let target = format!("{CONFIG_MAPS}/kube-root-ca.crt");
        rig.check(what, &rig.put("PATCH", &target, MERGE, patch), "400 [BadRequest]");
    }
    let yaml = b"metadata: {name: text}\ndata: {a: \"\xff\"}\n";
    rig.check("YAML", &rig.put("POST", CONFIG_MAPS, YAML, yaml), "400 [BadRequest]");
    // A pair of surrogates is a character.
    let pair = rig.put("POST", CONFIG_MAPS, JSON, data(br#""a":"\ud83d\ude00""#));
    assert_eq!(pair.json()["data"]["a"], "😀");
}

#[test]
fn row_06_numbers_that_fit_nowhere() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "properties": {
        "n": {"type": "integer", "format": "int64"},
        "i": {"type": "integer", "format": "int32"},
        "f": {"type": "number"},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }}));
    let spec = |text: &str| {
        format!(
            r#"{{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{{"name":"n"}},"spec":{{{text}}}}}"#
        )
    };
    let post = |text: &str| rig.put("POST", WIDGETS, JSON, spec(text));
    let digits = "9".repeat(100_000);
    for number in ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", &digits, "1.", "0x10", "01"] {
        for field in ["n", "f", "any"] {
            let what = &number[..number.len().min(12)];
            let cost = rig
                .checked_cost(what, "400 [BadRequest]", || post(&format!("\"{field}\":{number}")));
            cost.assert_below(what, 10, PEAK_MIB);
        }
    }
    for text in ["\"n\":9223372036854775808", "\"n\":-9223372036854775809", "\"i\":2147483648"] {
        rig.check(text, &post(text), "422 [Invalid]");
    }
    for number in [".nan", ".inf", "-.inf", "1e400"] {
        let text = format!(
            "apiVersion: example.dev/v1\nkind: Widget\nmetadata: {{name: n}}\nspec: {{any: {number}}}\n"
        );
        let answer = rig.put("POST", WIDGETS, YAML, text);
        rig.check(number, &answer, "400 [BadRequest]");
    }
    // A built-in is decoded into its Go type, where a number that does not fit is no such field.
    let lease = "/clusters/root/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for number in ["2147483648", "1.5", "1e400", "\"1\"", "9223372036854775808"] {
        let body =
            format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"leaseDurationSeconds":{number}}}}}"#);
        rig.check(number, &rig.put("POST", lease, JSON, body), "400 [BadRequest]");
    }
}

#[test]
fn row_07_protobuf_that_is_broken() {
    let rig = Rig::start();
    let field = |tag: u8, bytes: &[u8]| {
        let mut out = vec![tag << 3 | 2];
        let mut length = bytes.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        [out.as_slice(), bytes].concat()
    };
    // The envelope: a TypeMeta, then the object's bytes.
    let envelope = |version: &str, kind: &str, raw: &[u8]| {
        let meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".as_slice(), &field(1, &meta), &field(2, raw)].concat()
    };
    let map = |raw: &[u8]| envelope("v1", "ConfigMap", raw);
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("no magic", map(b"")[4..].to_vec()),
        ("another magic", [b"k9s\0".as_slice(), &map(b"")[4..]].concat()),
        ("nothing", Vec::new()),
        ("JSON", br#"{"metadata":{"name":"a"}}"#.to_vec()),
        ("a truncated varint", map(&[0x0a, 0x80])),
        (
            "a varint of eleven bytes",
            map(&[0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ),
        ("a length of 2^31", map(&[0x0a, 0x80, 0x80, 0x80, 0x80, 0x08])),
        ("a length of 2^63", map(&[0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1])),
        (
            "a length of the envelope",
            [b"k8s\0".as_slice(), &[0x12, 0xff, 0xff, 0xff, 0xff, 0x07]].concat(),
        ),
        ("a name that is no UTF-8", map(&field(1, &field(1, b"a\xff")))),
        ("a key that is no UTF-8", map(&field(2, &field(1, b"a\xff")))),
        ("a group", map(&[0x0b])),
        ("field 0", map(&[0x02, 0x00])),
        ("a wrong wire type", map(&[0x08, 0x01])),
        ("an end within a map's entry", map(&[0x12, 0x03, 0x0a, 0x05, b'a'])),
    ];
    for (what, body) in bodies {
        let cost = rig.checked_cost(what, "400 [BadRequest]", || {
            rig.put("POST", CONFIG_MAPS, PROTOBUF, &body)
        });
        cost.assert_below(what, 10, PEAK_MIB);
    }
    // An empty message is an object without a name.
    rig.check("the magic", &rig.put("POST", CONFIG_MAPS, PROTOBUF, b"k8s\0"), "422 [Invalid]");
    // JSONSchemaProps in JSONSchemaProps: `not` is field 27 of it. Lengths grow outwards, so the
    // innermost is made first.
    let mut schema = Vec::new();
    for _ in 0..10_000 {
        let mut outer = vec![0xda, 0x01];
        let mut length = schema.len();
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend_from_slice(&schema);
        schema = outer;
    }
    // spec.versions[0].schema.openAPIV3Schema.
    let version = [field(1, b"v1"), field(4, &field(1, &schema))].concat();
    let body = envelope(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &field(2, &field(7, &version)),
    );
    let cost = rig.checked_cost("10,000 schemas", "400 [BadRequest]", || {
        rig.put("POST", CRDS, PROTOBUF, &body)
    });
    cost.assert_below("10,000 schemas in each other", 10, PEAK_MIB);
    rig.widgets(json!({"type": "object"}));
    let answer = rig.put("POST", WIDGETS, PROTOBUF, envelope("example.dev/v1", "Widget", b""));
    rig.check("a custom resource", &answer, "415 [UnsupportedMediaType]");
}

#[test]
fn row_08_media_types() {
    let rig = Rig::start();
    for media in ["text/xml", "text/plain", "application/x-www-form-urlencoded", "x", "*/*"] {
        let answer = rig.put("POST", CONFIG_MAPS, media, "<a/>");
        rig.check(media, &answer, "415 [UnsupportedMediaType]");
    }
    for media in ["text/xml", "application/json", "application/yaml", PROTOBUF] {
        let answer = rig.put("PATCH", &format!("{CONFIG_MAPS}/kube-root-ca.crt"), media, "{}");
        rig.check(media, &answer, "415 [UnsupportedMediaType]");
    }
    for accept in [
        "image/png",
        "text/html",
        "application/json;q=0",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
    ] {
        let accept = [("Accept", accept)];
        for target in [
            CONFIG_MAPS.to_owned(),
            format!("{CONFIG_MAPS}/kube-root-ca.crt"),
            format!("{CONFIG_MAPS}?watch=1"),
        ] {
            let answer = rig.ask("GET", &target, &accept, b"");
            rig.check(&format!("{target} {accept:?}"), &answer, "406 [NotAcceptable]");
        }
    }
    // An object in front of 100 MiB of spaces: whoever inflates it finds it valid.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(br#"{"metadata":{"name":"inflated"}}"#).expect("compress");
    for _ in 0..100 {
        gzip.write_all(&[b' '; 1 << 20]).expect("compress");
    }
    let bomb = gzip.finish().expect("compress");
    for encoding in [None, Some(("Content-Encoding", "gzip"))] {
        let headers: Vec<_> = [("Content-Type", JSON)].into_iter().chain(encoding).collect();
        let cost = rig.checked_cost("a gzip bomb", "400 [BadRequest]", || {
            rig.ask("POST", CONFIG_MAPS, &headers, &bomb)
        });
        cost.assert_below("gzip bomb", 10, PEAK_MIB);
    }
}

/// Bodies of which every byte becomes much memory.
#[test]
fn bodies_of_many_small_values() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    const LENGTH: usize = (3 << 20) - 1024;
    let many = |value: &str| vec![value; LENGTH / (value.len() + 1)].join(",");
    for value in ["{\"\":0}", "{}", "[]", "[0]", "0", "\"\"", "null", "[[0]]", "{\"a\":{\"a\":0}}"]
    {
        let object = format!(
            r#"{{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{{"name":"m"}},"spec":{{"a":[{}]}}}}"#,
            many(value)
        );
        for media in [JSON, YAML] {
            let (answer, cost) = rig.server.cost(|| rig.put("POST", WIDGETS, media, &object));
            assert!(matches!(answer.code, 400 | 413), "{value}: {}", answer.verdict());
            // Twice as much as values are let to take, and the time of a body that is taken.
            cost.assert_below(&format!("{value} as {media}: {}", answer.verdict()), 500, 32);
            rig.server.assert_alive(value);
        }
    }
    // The same as one member, which a report would name each time.
    let deep = "{\"a\":".repeat(2_400);
    let twice = "\"b\":0,".repeat(400_000);
    let body = format!("{deep}{{{twice}\"b\":0}}{}", "}".repeat(2_400));
    let cost = rig.checked_cost("400,000 duplicates", "400 [BadRequest]", || {
        rig.put("POST", &format!("{WIDGETS}?fieldValidation=Strict"), JSON, &body)
    });
    cost.assert_below("400,000 duplicates in 2,400 levels", 100, PEAK_MIB);
}

impl Rig {
    /// The head of a write of ConfigMaps; `framing` are its headers about the body.
    fn head(&self, method: &str, framing: &str) -> Vec<u8> {
        format!(
            "{method} {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{framing}\r\n",
            self.admin
        )
        .into_bytes()
    }
}
