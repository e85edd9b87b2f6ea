//! HTTP/2 floods: the connection ends with GOAWAY ENHANCE_YOUR_CALM, and others are served on.

use it::raw::Raw;

use super::*;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ENHANCE_YOUR_CALM: u32 = 11;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HPACK without indexing or Huffman codes: lengths below 127 only.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |t: &str| [&[t.len() as u8], t.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

fn request(method: &str, path: &str) -> Vec<u8> {
    [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        .iter()
        .flat_map(|(name, value)| header(name, value))
        .collect()
}

fn connect(rig: &Rig) -> Raw {
    let mut raw = rig.server.connect("h2");
    raw.write(
        &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(SETTINGS, 0, 0, b"")].concat(),
    );
    raw
}

/// The error code of the GOAWAY that ends the connection.
fn goaway(raw: &mut Raw) -> Option<u32> {
    loop {
        let head = raw.take(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = raw.take(length)?;
        if head[3] == GOAWAY {
            let code = payload[4..8].try_into().expect("four bytes");
            return Some(u32::from_be_bytes(code));
        }
    }
}

/// Writes `piece(n)` for n = 0, 1, ... until the server no longer takes it, at most `most` times.
fn flood(raw: &mut Raw, most: u32, piece: impl Fn(u32) -> Vec<u8>) {
    const PIECES: u32 = 64;
    for batch in 0..most / PIECES {
        let bytes: Vec<u8> = (0..PIECES).flat_map(|n| piece(batch * PIECES + n)).collect();
        if !raw.try_write(&bytes) {
            return;
        }
    }
}

fn calmed(rig: &Rig, what: &str, begin: &[u8], most: u32, piece: impl Fn(u32) -> Vec<u8>) {
    let (code, cost) = rig.server.cost(|| {
        let mut raw = connect(rig);
        raw.write(begin);
        flood(&mut raw, most, piece);
        goaway(&mut raw)
    });
    assert_eq!(code, Some(ENHANCE_YOUR_CALM), "{what}");
    cost.assert_below(what, 500, PEAK_MIB);
    rig.server.assert_alive(what);
}

#[test]
fn row_25_rapid_reset() {
    let rig = Rig::start();
    let request = request("GET", CONFIG_MAPS);
    let cancel = 8u32.to_be_bytes();
    calmed(&rig, "requests that are reset at once", b"", 20_000, |n| {
        let stream = 2 * n + 1;
        [
            frame(HEADERS, END_HEADERS | END_STREAM, stream, &request),
            frame(RST_STREAM, 0, stream, &cancel),
        ]
        .concat()
    });
    let pathless = [header(":method", "GET"), header(":scheme", "https")].concat();
    // The server resets: each stream breaks the protocol in a way that is the stream's fault.
    calmed(&rig, "requests that the server has to reset", b"", 20_000, |n| {
        let stream = 2 * n + 1;
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &pathless)
    });
}

#[test]
fn row_25_continuation_flood() {
    let rig = Rig::start();
    let begin = frame(HEADERS, 0, 1, &request("GET", "/readyz"));
    let begin = begin.as_slice();
    calmed(&rig, "continuations", begin, 500_000, |_| {
        frame(CONTINUATION, 0, 1, &header("x-a", "b"))
    });
    calmed(&rig, "empty continuations", begin, 500_000, |_| frame(CONTINUATION, 0, 1, b""));
}

#[test]
fn row_25_empty_data_flood() {
    let rig = Rig::start();
    let begin = frame(HEADERS, END_HEADERS, 1, &request("POST", CONFIG_MAPS));
    calmed(&rig, "empty data", &begin, 2_000_000, |_| frame(DATA, 0, 1, b""));
    // Spread over streams that stay open.
    let begin: Vec<u8> = (0..100)
        .flat_map(|n| frame(HEADERS, END_HEADERS, 2 * n + 1, &request("POST", CONFIG_MAPS)))
        .collect();
    calmed(&rig, "empty data of many streams", &begin, 2_000_000, |n| {
        frame(DATA, 0, 2 * (n % 100) + 1, b"")
    });
}
