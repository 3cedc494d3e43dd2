//! bowstring for C and C++. The header, `include/bowstring.h`, is generated from this crate; what a C programmer must
//! know stands in these comments, because that is where the header takes its own from.
//!
//! Rules that hold for every function:
//! - It returns a [`BowstringStatus`]; results go through the last parameter, which is untouched on failure. The reason
//!   of the thread's last failure is [`bowstring_last_error`].
//! - Handles are opaque. Who gets one through an out parameter owns it and frees it with the type's `_free`, which takes
//!   NULL. Inputs are borrowed for the call only: they may be freed right after it, also while the GPU still reads.
//! - Any function may be called on any thread; one handle may be used by several threads at once, but for its `_free`.
//! - A function waits for a GPU (it synchronises) only where its comment says so.
//! - NULL where a pointer is needed is `BOWSTRING_STATUS_INVALID`, a panic of ours `BOWSTRING_STATUS_PANIC`.

mod array;
mod async_stream;
mod batch;
mod compute;
mod device;
mod doctor;
mod expr;
mod expressions;
mod interrupt;
mod metadata;
mod status;
mod stream;
mod stream_operations;
mod tensor;
mod validate;

pub use array::*;
pub use async_stream::*;
pub use batch::*;
pub use compute::*;
pub use device::*;
pub use doctor::*;
pub use expr::*;
pub use expressions::*;
pub use interrupt::*;
pub use status::*;
pub use stream::*;
pub use stream_operations::*;
pub use tensor::*;
pub use validate::*;

/// Every handle may go to any thread, and be used by several at once: what the rules above promise, the compiler checks.
const _: () = {
    const fn used_by_any_thread<Handle: Send + Sync>() {}
    used_by_any_thread::<BowstringArray>();
    used_by_any_thread::<BowstringArrays>();
    used_by_any_thread::<BowstringAsyncBatches>();
    used_by_any_thread::<BowstringBatch>();
    used_by_any_thread::<BowstringBatches>();
    used_by_any_thread::<BowstringDevice>();
    used_by_any_thread::<BowstringExpr>();
    used_by_any_thread::<BowstringReport>();
    used_by_any_thread::<BowstringSelection>();
    used_by_any_thread::<BowstringStream>();
};
