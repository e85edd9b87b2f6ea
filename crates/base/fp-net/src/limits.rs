//! The limits of a connection. Where Kubernetes has one, it is the same.

use std::time::Duration;

/// Connections that are open at once; beyond it none is accepted until one ends.
pub const CONNECTIONS_MAX: usize = 20_000;
/// Connections that the kernel holds for us while we are busy.
pub const BACKLOG: u32 = 1024;
/// From the accepted socket to the end of the TLS handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP/1: one request's header, and how long an idle connection lives (Go: 32 s).
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Request line and headers together; beyond it the answer is 431 (Go's `DefaultMaxHeaderBytes`).
pub const HEADER_BYTES_MAX: usize = 1 << 20;
/// HTTP/2: streams per connection, when the flag `--http2-max-streams-per-connection` is 0.
pub const STREAMS_MAX: u32 = 250;
/// HTTP/2: how much of one request body may be under way before the handler reads it.
pub const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// HTTP/2: the same over all streams of a connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// HTTP/2: how much of one response is buffered for a client that does not read.
pub const SEND_BUFFER_BYTES: usize = 64 << 10;
/// HTTP/2: streams that the peer opened and reset at once and that are not accepted yet; more is
/// a rapid-reset attack and ends the connection (ENHANCE_YOUR_CALM).
pub const PENDING_RESETS_MAX: usize = 20;
/// HTTP/2: streams that this side reset because of the peer's errors, before the connection ends.
pub const ERROR_RESETS_MAX: usize = 128;
/// HTTP/2: a silent connection is asked whether its peer still lives.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);
/// And ended when it does not answer in this time.
pub const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause after an `accept` that failed for want of descriptors or memory.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
