//! The one test binary: a file per topic.

mod equivalence_exchange;
mod equivalence_filter;
mod equivalence_take;
mod exchange;
mod filter;
mod generators;
mod layers;
mod support;
mod take;
