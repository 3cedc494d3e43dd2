//! Casts on a GPU, by the composition of the types: [`map`](super::map) has the types of fixed width,
//! [`text`] strings and binaries, [`bytes`] binaries that become fixed-size, [`nested`] types with children,
//! [`views`] list views and fixed-size lists, [`dictionary`] dictionaries, [`runs`] runs, [`unions`] unions,
//! [`print`] lists that become text.
//!
//! The one idea: a cast that changes the shape of an array (offsets, views, keys) is a pass of its own kind,
//! and casts the parts by any route again, as arrow-cast does. The composition of a type decides, so no pair
//! is listed twice. A pair that no device supports is `None`.

mod bytes;
mod columns;
mod dictionary;
mod held;
mod inside;
mod laid;
mod nested;
mod offsets;
mod print;
mod runs;
mod text;
mod unions;
mod views;

pub(crate) use columns::cast;
pub(crate) use laid::{Lengths, lay_out, offset_width};
pub(crate) use offsets::most;
