//! Queries with our operators against the same queries without them.

mod devices;
mod expressions;
mod fuzz;
mod groups;
mod groups_on_cpu;
mod harm;
mod join_kinds;
mod joins;
mod key_filters;
mod limits;
mod odd_plans;
mod plans;
mod slt;
mod spilled;
mod streamed;
mod support;
mod tables;
mod tops;
mod why;
mod windows;
