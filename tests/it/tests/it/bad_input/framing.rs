//! HTTP/1 messages that two programs could read differently: 400, and the connection ends.

use super::*;

/// Everything that the server says to these bytes until it closes.
fn said(rig: &Rig, bytes: &[u8]) -> String {
    let mut raw = rig.server.connect("http/1.1");
    raw.write(bytes);
    String::from_utf8_lossy(&raw.rest()).into_owned()
}

/// A message that is refused: one answer, 400, and nothing after it, whatever else was sent.
fn refused(rig: &Rig, what: &str, message: &str) {
    let smuggled = format!("GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-What: {what}\r\n\r\n");
    let told = said(rig, format!("{message}{smuggled}").as_bytes());
    assert!(told.starts_with("HTTP/1.1 400 "), "{what}: {told:?}");
    assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{what}: {told:?}");
    rig.server.assert_alive(what);
    // The same as the second request of a connection that was used well.
    let first = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab";
    let told = said(rig, format!("{first}{message}{smuggled}").as_bytes());
    assert!(told.starts_with("HTTP/1.1 200 "), "{what}: {told:?}");
    assert_eq!(told.matches("HTTP/1.1 400 ").count(), 1, "{what}: {told:?}");
    assert_eq!(told.matches("HTTP/1.1 ").count(), 2, "{what}: {told:?}");
    rig.server.assert_alive(what);
}

#[test]
fn row_25_messages_that_are_ambiguous() {
    let rig = Rig::start();
    let get = "GET /readyz HTTP/1.1\r\n";
    let post = "POST /readyz HTTP/1.1\r\nHost: localhost\r\n";
    for (what, message) in [
        (
            "TE after CL",
            format!("{post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ),
        (
            "CL after TE",
            format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
        ),
        (
            "TE and CL of 0",
            format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"),
        ),
        (
            "TE and two CL",
            format!(
                "{post}Content-Length: 4\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ),
        ("two CL", format!("{post}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd")),
        ("two CL that agree", format!("{post}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd")),
        ("a list of CL", format!("{post}Content-Length: 4, 4\r\n\r\nabcd")),
        ("a signed CL", format!("{post}Content-Length: +4\r\n\r\nabcd")),
        ("a negative CL", format!("{post}Content-Length: -4\r\n\r\nabcd")),
        ("a hexadecimal CL", format!("{post}Content-Length: 0x4\r\n\r\nabcd")),
        ("an empty CL", format!("{post}Content-Length: \r\n\r\n")),
        ("a CL of 2^64", format!("{post}Content-Length: 18446744073709551616\r\n\r\n")),
        ("an unknown TE", format!("{post}Transfer-Encoding: gzip\r\n\r\n")),
        (
            "TE of identity",
            format!("{post}Transfer-Encoding: identity\r\nContent-Length: 4\r\n\r\nabcd"),
        ),
        ("chunked, then gzip", format!("{post}Transfer-Encoding: chunked, gzip\r\n\r\n")),
        ("gzip, then chunked", format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")),
        (
            "two TE",
            format!(
                "{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ),
        (
            "TE of a strange chunked",
            format!("{post}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
        ),
        (
            "TE in HTTP/1.0",
            "POST /readyz HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                .to_owned(),
        ),
        ("a space before the colon", format!("{post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n")),
        ("two Host", format!("{get}Host: localhost\r\nHost: localhost\r\n\r\n")),
        ("two Host that differ", format!("{get}Host: a\r\nX: y\r\nhost: b\r\n\r\n")),
        ("a bare CR in a value", format!("{get}Host: localhost\r\nX: a\rb\r\n\r\n")),
        (
            "a bare CR before a header",
            format!("{get}Host: localhost\r\nX: a\rContent-Length: 4\r\n\r\n"),
        ),
        ("a bare CR in a name", format!("{get}Host: localhost\r\nX\rY: a\r\n\r\n")),
        (
            "a bare CR in the request line",
            "GET /readyz\rx HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        ),
        ("a bare CR at the end of the head", format!("{get}Host: localhost\r\n\rX: a\r\n\r\n")),
        ("a NUL in a value", format!("{get}Host: localhost\r\nX: a\0b\r\n\r\n")),
        ("a folded line", format!("{get}Host: localhost\r\nX: a\r\n b\r\n\r\n")),
        ("a line without a colon", format!("{get}Host: localhost\r\nX\r\n\r\n")),
        ("a header without a name", format!("{get}Host: localhost\r\n: a\r\n\r\n")),
        ("no method", " /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()),
        ("another version", "GET /readyz HTTP/1.7\r\nHost: localhost\r\n\r\n".to_owned()),
        ("no version", "GET /readyz\r\nHost: localhost\r\n\r\n".to_owned()),
    ] {
        refused(&rig, what, &message);
    }
}

/// A chunk that is none breaks the body off, after its head was answered for: 400 and close.
#[test]
fn row_25_chunks_that_are_ambiguous() {
    let rig = Rig::start();
    for (what, chunks) in [
        ("a size that is none", "x\r\nabcd\r\n0\r\n\r\n"),
        ("no size", "\r\nabcd\r\n0\r\n\r\n"),
        ("a signed size", "+4\r\nabcd\r\n0\r\n\r\n"),
        ("a size of 2^64", "10000000000000000\r\nabcd\r\n0\r\n\r\n"),
        ("a size that is too small", "3\r\nabcd\r\n0\r\n\r\n"),
        ("a bare LF behind a chunk", "4\r\nabcd\n0\r\n\r\n"),
    ] {
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            rig.admin
        );
        let told =
            said(&rig, format!("{head}{chunks}GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert!(told.starts_with("HTTP/1.1 400 "), "{what}: {told:?}");
        assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{what}: {told:?}");
        rig.server.assert_alive(what);
    }
}

#[test]
fn messages_that_are_read_in_one_way_are_answered() {
    let rig = Rig::start();
    let object = r#"{"metadata":{"name":"chunked"}}"#;
    let (start, end) = object.split_at(10);
    let head = |framing: &str| {
        format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{framing}\r\n\r\n",
            rig.admin
        )
    };
    let chunked = format!(
        "{}{:x};name=value\r\n{start}\r\n{:X}\r\n{end}\r\n0\r\nHost: a\r\nHost: b\r\n\r\n",
        head("Transfer-Encoding: chunked"),
        start.len(),
        end.len()
    );
    let sized = r#"{"metadata":{"name":"sized"},"data":{"a":"\r\nHost: a\r\nHost: b\r\n"}}"#;
    let sized = format!("{}{sized}", head(&format!("Content-Length: {}", sized.len())));
    let last = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let told = said(&rig, format!("{chunked}{sized}{chunked}{last}").as_bytes());
    let codes: Vec<&str> = told.split("HTTP/1.1 ").skip(1).map(|a| &a[..3]).collect();
    assert_eq!(codes, ["201", "201", "409", "200"], "{told}");
}
