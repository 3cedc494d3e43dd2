//! Compute for Apache Arrow arrays on CPU and GPU memory: filter, take, cast, sort, group, join, windows and
//! expressions. GPUs are NVIDIA's and AMD's.
//!
//! A [`DeviceArray`] is Arrow data on a device: an imported C struct, a view of an arrow-rs array, or the
//! result of an operation. A [`DeviceBatch`] is a set of arrays under a schema. Each operation accepts
//! either, and a [`Stream`], which determines the device and the order of execution. It returns a
//! [`Pending`] result, which can be waited for or awaited.
//!
//! | here | in arrow-rs | in CUDA's world |
//! | --- | --- | --- |
//! | [`DeviceArray`], [`DeviceBatch`] | `ArrayRef`, `RecordBatch` | a `cudf::column`, a `cudf::table` |
//! | [`Device`] | | the primary context of a device |
//! | [`Stream`] | | a `cudaStream_t`; the CPU's stream runs its work at once |
//! | an array's [event](DeviceArray::wait) | | the `cudaEvent_t` after its last write |
//! | [`Pending`] | | the copy of a few numbers to the host, and the work that depends on them |
//! | [`compute::filter`] | `arrow_select::filter::filter` | `cudf::apply_boolean_mask` |
//! | [`compute::take`] | `arrow_select::take::take` | `cudf::gather` |
//! | [`compute::cast`] | `arrow_cast::cast` | `cudf::cast` |
//! | [`compute::sort_by`] | `arrow_ord::sort::lexsort_to_indices` | `cudf::sort_by_key` |
//! | [`compute::Query::group_by`] | | `cudf::groupby` |
//! | [`compute::join`] | | `cudf::inner_join` and others, with a gather |
//! | [`compute::Windows`] | | `cudf::grouped_rolling_window` |
//! | [`compute::evaluate`] | `arrow_arith` and `arrow_ord`, step by step | `cudf::compute_column` |
//! | [`exchange::import_array`] | `arrow_array::ffi::from_ffi` | `cudf::from_arrow_device` |
//! | [`exchange::export_array`] | `arrow_array::ffi::to_ffi` | `cudf::to_arrow_device` |
//! | [`array::Batches`] | `RecordBatchReader` | |
//!
//! On the CPU:
//!
//! ```
//! use arrow_array::{ArrayRef, BooleanArray, Int32Array};
//! use bowstring::{DeviceArray, Stream, compute::filter};
//! # use std::sync::Arc;
//! # fn main() -> bowstring::Result<()> {
//! let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(300)]));
//! let mask: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
//!
//! // These share the memory of arrow's arrays.
//! let (values, mask) = (DeviceArray::try_from(&values)?, DeviceArray::try_from(&mask)?);
//! let kept = filter(&values, &mask, &Stream::cpu()).wait()?;
//! assert_eq!(ArrayRef::try_from(&kept)?.as_ref(), &Int32Array::from(vec![1, 300]));
//! # Ok(())
//! # }
//! ```
//!
//! On a GPU, if the machine has one (`DeviceType::Cuda` or `DeviceType::Rocm` and a number). This example
//! uses the emulated GPU:
//!
//! ```
//! use arrow_array::{ArrayRef, BooleanArray, Int32Array};
//! use bowstring::{DeviceArray, Device, compute::filter};
//! # use std::sync::Arc;
//! # fn main() -> bowstring::Result<()> {
//! # let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(300)]));
//! # let mask: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
//! let stream = Device::emulated().stream()?; // Device::open(DeviceType::Cuda, 0)?.stream()?
//! let values = stream.upload(&DeviceArray::try_from(&values)?)?; // or exchange::import_array: no copy
//! let mask = stream.upload(&DeviceArray::try_from(&mask)?)?;
//!
//! let pending = filter(&values, &mask, &stream); // nothing has waited yet
//! let kept = stream.download(&pending.wait()?)?;
//! assert_eq!(ArrayRef::try_from(&kept)?.as_ref(), &Int32Array::from(vec![1, 300]));
//! # Ok(())
//! # }
//! ```
//!
//! [`compute`] has the operations, and documents for each whether it synchronises and what it copies.
//! [`exchange`] imports and exports arrays. [`ffi`] has the C structs. `DESIGN.md` explains the design and
//! its reasons.

#![deny(unsafe_code)]

pub mod array;
pub mod compute;
mod cpu;
pub mod device;
mod engine;
mod error;
pub mod exchange;
pub mod expr;
pub mod ffi;
mod gpu;
#[doc(hidden)]
pub mod images;
#[doc(hidden)]
pub mod internals;
mod pass;
mod rules;
mod threads;
mod transfer;

pub use array::{DeviceArray, DeviceBatch};
pub use device::{Device, Stream, interruptible};
pub use error::{Error, Failure, Result, Unsupported};
pub use gpu::Kernels;
pub use pass::Pending;

/// Handles can be sent to and shared between threads; pending results can be sent.
const _: () = {
    const fn goes_to_any_thread<T: Send>() {}
    const fn used_by_any_thread<T: Send + Sync>() {}
    used_by_any_thread::<DeviceArray>();
    used_by_any_thread::<DeviceBatch>();
    used_by_any_thread::<Device>();
    used_by_any_thread::<Stream>();
    used_by_any_thread::<compute::Selection>();
    goes_to_any_thread::<Pending<DeviceArray>>();
    goes_to_any_thread::<Pending<DeviceBatch>>();
};

/// Compiles and runs the README's example with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
