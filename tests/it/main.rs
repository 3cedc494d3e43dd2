//! The one test binary: a file per topic.

mod cast;
mod equivalence_exchange;
mod equivalence_filter;
mod equivalence_take;
mod exchange_arrow;
mod filter;
mod generators;
mod layers;
mod nulls;
mod samples;
mod support;
mod take;
