//! HTTP/1 framing that two programs could read differently is refused before hyper sees it.
//!
//! hyper follows the letter of RFC 9112 where it lets a server be lenient: with
//! `Transfer-Encoding` it drops every `Content-Length` unseen, and it hands out several `Host`
//! headers. A proxy before us that reads such a message the other way would let a client smuggle a
//! request past it. So the bytes of a connection go through a [`Gate`] that follows the messages
//! and spoils the head of an ambiguous one: hyper then answers 400 and closes.
//!
//! Nothing here upgrades a connection; whoever adds that must take the gate away with it.

/// A header name or a chunk's size that is longer than this is none that matters here.
const WORD_BYTES_MAX: usize = 64;
/// No header may hold it, so hyper refuses the head that does.
const SPOILED: u8 = 0;

/// Follows the requests of one connection.
pub(crate) struct Gate {
    at: At,
    head: Head,
    /// The name, value or size that is being read, as far as it may matter.
    word: Vec<u8>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// Before a request: empty lines are skipped, as hyper does.
    Start,
    RequestLine,
    /// The first byte of a header line, or the end of the head.
    LineStart,
    Name,
    Value(Name),
    /// So many bytes of a body are to come.
    Body(u64),
    ChunkSize,
    /// The rest of the line of a chunk's size.
    ChunkExtension,
    /// The line end behind a chunk's data.
    ChunkEnd,
    /// A trailer line; `empty` while it has no bytes.
    Trailer {
        empty: bool,
    },
    /// A head was spoiled; hyper closes, so the rest is nobody's.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    ContentLength,
    TransferEncoding,
    Host,
    Other,
}

/// What the head has said so far.
#[derive(Default)]
struct Head {
    length: Option<u64>,
    chunked: bool,
    n_hosts: usize,
}

/// The message can be read in two ways.
struct Ambiguous;

impl Gate {
    pub(crate) fn new() -> Self {
        Self { at: At::Start, head: Head::default(), word: Vec::new() }
    }

    /// Looks at the bytes that were read, and spoils the one that makes a head ambiguous.
    pub(crate) fn pass(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            match self.at {
                At::Refused => return,
                At::Body(left) => {
                    let here = (bytes.len() - at) as u64;
                    at += left.min(here) as usize;
                    self.at = match left - left.min(here) {
                        0 if self.head.chunked => At::ChunkEnd,
                        0 => self.next_request(),
                        more => At::Body(more),
                    };
                }
                _ => match self.byte(bytes[at]) {
                    Ok(next) => {
                        self.at = next;
                        at += 1;
                    }
                    Err(Ambiguous) => {
                        bytes[at] = SPOILED;
                        self.at = At::Refused;
                    }
                },
            }
        }
    }

    fn next_request(&mut self) -> At {
        self.head = Head::default();
        At::Start
    }

    fn byte(&mut self, byte: u8) -> Result<At, Ambiguous> {
        Ok(match (self.at, byte) {
            (At::Start, b'\r' | b'\n') => At::Start,
            (At::RequestLine, b'\n') => At::LineStart,
            (At::Start | At::RequestLine, _) => At::RequestLine,
            (At::LineStart, b'\r') => At::LineStart,
            (At::LineStart, b'\n') => self.end_of_head(),
            // A folded line, or a header without a name.
            (At::LineStart, b' ' | b'\t' | b':') => return Err(Ambiguous),
            (At::LineStart, _) => {
                self.word.clear();
                self.word.push(byte);
                At::Name
            }
            (At::Name, b':') => {
                let name = self.name()?;
                self.word.clear();
                At::Value(name)
            }
            // hyper refuses a line without a colon by itself; a space before it is smuggling.
            (At::Name, b'\n' | b' ' | b'\t') => return Err(Ambiguous),
            (At::Name, _) => {
                self.keep(byte);
                At::Name
            }
            (At::Value(name), b'\n') => {
                self.value(name)?;
                At::LineStart
            }
            (At::Value(name), _) => {
                self.keep(byte);
                At::Value(name)
            }
            (At::ChunkSize | At::ChunkExtension, b'\n') => self.chunk()?,
            (At::ChunkSize, b';' | b' ' | b'\t' | b'\r') => At::ChunkExtension,
            (At::ChunkSize, _) => {
                self.keep(byte);
                At::ChunkSize
            }
            (At::ChunkExtension, _) => At::ChunkExtension,
            (At::ChunkEnd, b'\n') => {
                self.word.clear();
                At::ChunkSize
            }
            (At::ChunkEnd, _) => At::ChunkEnd,
            (At::Trailer { empty: true }, b'\n') => self.next_request(),
            (At::Trailer { empty: false }, b'\n') => At::Trailer { empty: true },
            (At::Trailer { empty: true }, b'\r') => At::Trailer { empty: true },
            (At::Trailer { .. }, _) => At::Trailer { empty: false },
            (At::Body(_) | At::Refused, _) => self.at,
        })
    }

    fn keep(&mut self, byte: u8) {
        if self.word.len() <= WORD_BYTES_MAX {
            self.word.push(byte);
        }
    }

    fn name(&mut self) -> Result<Name, Ambiguous> {
        let is = |name: &[u8]| self.word.eq_ignore_ascii_case(name);
        if is(b"content-length") {
            return Ok(Name::ContentLength);
        }
        if is(b"transfer-encoding") {
            return Ok(Name::TransferEncoding);
        }
        if is(b"host") {
            self.head.n_hosts += 1;
            return if self.head.n_hosts > 1 { Err(Ambiguous) } else { Ok(Name::Host) };
        }
        Ok(Name::Other)
    }

    fn value(&mut self, name: Name) -> Result<(), Ambiguous> {
        let value = self.word.trim_ascii();
        match name {
            Name::ContentLength => {
                let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                let first = self.head.length.is_none() && !self.head.chunked;
                self.head.length = length.filter(|_| digits && first);
                if self.head.length.is_none() {
                    return Err(Ambiguous);
                }
            }
            Name::TransferEncoding => {
                let first = self.head.length.is_none() && !self.head.chunked;
                if !first || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Ambiguous);
                }
                self.head.chunked = true;
            }
            Name::Host | Name::Other => {}
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> At {
        self.word.clear();
        match (self.head.chunked, self.head.length) {
            (true, _) => At::ChunkSize,
            (false, Some(length)) if length > 0 => At::Body(length),
            (false, _) => self.next_request(),
        }
    }

    /// The size line has ended. Spoiling a size makes hyper end the body with an error.
    fn chunk(&mut self) -> Result<At, Ambiguous> {
        let text = std::str::from_utf8(&self.word).map_err(|_| Ambiguous)?;
        let hex = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        let size = u64::from_str_radix(text, 16).ok().filter(|_| hex).ok_or(Ambiguous)?;
        Ok(if size == 0 { At::Trailer { empty: true } } else { At::Body(size) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hyper would see, fed in pieces of `step` bytes; a spoiled byte shows as `#`.
    fn passed(text: &str, step: usize) -> String {
        let mut gate = Gate::new();
        let mut bytes = text.as_bytes().to_vec();
        bytes.chunks_mut(step).for_each(|piece| gate.pass(piece));
        String::from_utf8(bytes).unwrap().replace('\0', "#")
    }

    /// `#` marks the byte that is spoiled; without one everything passes.
    fn check(text: &str, want: &str) {
        for step in [1, 2, 3, 7, 4096] {
            assert_eq!(passed(text, step), want, "in pieces of {step}");
        }
    }

    fn passes(text: &str) {
        check(text, text);
    }

    #[test]
    fn messages_that_are_read_in_one_way_pass() {
        passes("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        passes("\r\n\r\nGET / HTTP/1.1\nHost: a\n\n");
        // What looks like a head inside of a body is none.
        let body = "Host: a\r\nHost: b\r\nContent-Length: 1\r\n\r\n";
        let sized = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        passes(&format!("{sized}{sized}GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
        let chunked = format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n{:x};ext=1\r\n{body}\r\n2\r\nab\r\n0\r\nHost: t\r\nHost: u\r\n\r\n",
            body.len()
        );
        passes(&format!("{chunked}{sized}{chunked}"));
        passes("PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }

    #[test]
    fn ambiguous_messages_are_spoiled() {
        check(
            "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r#\r\n",
        );
        check(
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r#\r\n",
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nhOST# b\r\n",
        );
        check("GET / HTTP/1.1\nHost: a\n Host: b\n", "GET / HTTP/1.1\nHost: a\n#Host: b\n");
        check("GET / HTTP/1.1\r\nHost : a\r\n", "GET / HTTP/1.1\r\nHost#: a\r\n");
        for value in ["+4", "4, 4", "-1", "0x4", "", "18446744073709551616", "4 4"] {
            check(
                &format!("POST / HTTP/1.1\r\nContent-Length: {value}\r\n"),
                &format!("POST / HTTP/1.1\r\nContent-Length: {value}\r#"),
            );
        }
        for value in ["gzip, chunked", "identity", "chunked, chunked", "xchunked", "\tchunk\u{b}ed"]
        {
            check(
                &format!("POST / HTTP/1.1\r\nTransfer-Encoding: {value}\r\n"),
                &format!("POST / HTTP/1.1\r\nTransfer-Encoding: {value}\r#"),
            );
        }
        let twice = "POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 4\r\n";
        check(twice, &format!("{}#", &twice[..twice.len() - 1]));
        // The second request of a connection is looked at as well.
        let first = "POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nab";
        check(
            &format!("{first}GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n"),
            &format!("{first}GET / HTTP/1.1\r\nHost: a\r\nHost# b\r\n"),
        );
        for size in ["", "x", "+1", "1x", "11111111111111111"] {
            check(
                &format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n"),
                &format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r#"),
            );
        }
    }
}
