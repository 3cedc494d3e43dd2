//! A function of each row's value: [`kernel`] feeds rows to the functions of [`function`], and [`functions`]
//! lists them all.

pub mod function;
#[macro_use]
pub mod task;
mod tile;
#[macro_use]
pub mod kernel;
pub mod functions;
