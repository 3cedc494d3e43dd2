//! The one test binary: a file per topic.

mod layers;
