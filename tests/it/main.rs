//! The one test binary: a file per topic.

mod equivalence_exchange;
mod exchange_arrow;
mod generators;
mod layers;
mod samples;
mod support;
