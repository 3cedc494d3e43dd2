//! bowstring for C and C++. The header, `include/bowstring.h`, is generated from this crate. The doc comments
//! here become the header's comments, so they contain what a C programmer needs.
//!
//! Rules for every function:
//! - It returns a [`BowstringStatus`]. Results are written to the last parameter, which is untouched on
//!   failure. [`bowstring_last_error`] has the reason of the thread's last failure.
//! - Handles are opaque. The caller owns a handle that it gets through an out parameter, and frees it with
//!   the type's `_free`, which accepts NULL. Inputs are borrowed during the call only: they may be freed
//!   right after it, even while the GPU still reads them.
//! - Any function may be called on any thread. Several threads may use one handle at once, except for its
//!   `_free`.
//! - A function waits for a GPU (it synchronises) only if its comment says so.
//! - A NULL pointer that is required is `BOWSTRING_STATUS_INVALID`; a panic in the library is
//!   `BOWSTRING_STATUS_PANIC`.

mod array;
mod async_stream;
mod batch;
mod compute;
mod device;
mod doctor;
mod expr;
mod expr_operations;
mod expressions;
mod group_by;
mod interrupt;
mod join_table;
mod metadata;
mod nulls;
mod prepared_join;
mod rearranged;
mod relational;
mod relational_streams;
mod status;
mod stream;
mod stream_operations;
mod tensor;
mod validate;
mod windows;

pub use array::*;
pub use async_stream::*;
pub use batch::*;
pub use compute::*;
pub use device::*;
pub use doctor::*;
pub use expr::*;
pub use expr_operations::*;
pub use expressions::*;
pub use group_by::*;
pub use interrupt::*;
pub use join_table::*;
pub use nulls::*;
pub use prepared_join::*;
pub use rearranged::*;
pub use relational::*;
pub use relational_streams::*;
pub use status::*;
pub use stream::*;
pub use stream_operations::*;
pub use tensor::*;
pub use validate::*;
pub use windows::*;

/// Makes the compiler check that every handle may be used by several threads at once, as the rules above
/// promise.
const _: () = {
    const fn used_by_any_thread<Handle: Send + Sync>() {}
    used_by_any_thread::<BowstringArray>();
    used_by_any_thread::<BowstringArrays>();
    used_by_any_thread::<BowstringAsyncBatches>();
    used_by_any_thread::<BowstringBatch>();
    used_by_any_thread::<BowstringBatches>();
    used_by_any_thread::<BowstringDevice>();
    used_by_any_thread::<BowstringExpr>();
    used_by_any_thread::<BowstringJoinTable>();
    used_by_any_thread::<BowstringPreparedJoin>();
    used_by_any_thread::<BowstringReport>();
    used_by_any_thread::<BowstringSelection>();
    used_by_any_thread::<BowstringStream>();
    used_by_any_thread::<BowstringWindows>();
};
