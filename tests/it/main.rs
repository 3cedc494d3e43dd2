//! The one test binary: a file per topic.

mod generators;
mod layers;
mod support;
