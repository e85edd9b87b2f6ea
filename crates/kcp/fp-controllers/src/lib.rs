//! The reconcilers: plumbing in x.rs, decisions in x/plan.rs.
