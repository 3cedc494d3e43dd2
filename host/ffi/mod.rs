//! L1: the C structs of the Arrow device interface, and nothing about drivers or kernels.
//!
//! Each struct owns what it points to. Dropping one calls the producer's `release` once; moving one out
//! leaves a released struct in its place. Fields are private, because safe code that could write `release`
//! could make a drop jump anywhere. The layout is the ABI's, so C code, or a cast pointer, reads and writes
//! them.

#![allow(unsafe_code)]

mod array;
mod async_stream;
mod device_type;
pub mod dlpack;
pub mod metadata;
mod schema;
mod stream;

pub use array::{ArrowArray, ArrowDeviceArray};
pub use arrow_schema::ffi::FFI_ArrowSchema;
pub use async_stream::{ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, AsyncHandler};
pub use device_type::DeviceType;
pub(crate) use schema::check_schema;
pub use stream::{ArrowArrayStream, ArrowDeviceArrayStream};

const _: () = {
    assert!(size_of::<FFI_ArrowSchema>() == 72);
    assert!(size_of::<ArrowArray>() == 80);
    assert!(size_of::<ArrowDeviceArray>() == 128);
    assert!(size_of::<ArrowArrayStream>() == 40);
    assert!(size_of::<ArrowDeviceArrayStream>() == 48);
};
