//! Clusters in one process over loopback: Ballista's own scheduler and client, and executors with bowstring's
//! engine.

mod answers;
mod cluster;
mod engines;
mod loss;
mod odd;
mod queries;
mod rule;
