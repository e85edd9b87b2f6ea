//! kcp's storage keys both ways, and the value codec.
