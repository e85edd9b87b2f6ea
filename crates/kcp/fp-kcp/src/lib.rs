//! kcp's API types, CRD tiers, path index, authorizers, admission, bootstrap content.
