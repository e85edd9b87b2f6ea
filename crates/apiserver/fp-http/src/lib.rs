//! Filter order, negotiation, watch streams, discovery, health.
