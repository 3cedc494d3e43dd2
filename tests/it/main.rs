//! The one test binary: a file per topic.

mod batches;
mod bench_model;
mod cast;
mod cast_devices;
mod costs;
mod device;
mod driver;
mod equivalence_cast;
mod equivalence_exchange;
mod equivalence_filter;
mod equivalence_nulls;
mod equivalence_take;
mod exchange;
mod faults;
mod filter;
mod generators;
mod images;
mod layers;
mod mutants;
mod nulls;
mod ordering;
mod ranges;
mod readme;
mod soak;
mod support;
mod take;
