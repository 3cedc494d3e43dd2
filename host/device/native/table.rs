//! The functions of a runtime's library, found by name when it is loaded.
//!
//! CUDA's driver API and HIP have most of them in common, down to the order and width of every argument: one
//! table with two names for each. Handles and device addresses are words here; the tests compare every
//! signature with the published headers.

use std::ffi::{c_char, c_void};

/// The code that every function returns: zero, or an error's number.
pub(in super::super) type Code = i32;
/// A stream, an event, a module, a function or an address of device memory.
pub(in super::super) type Word = usize;
/// The type of function that `call` calls back.
pub(in super::super) type Callback = unsafe extern "C" fn(Word, Code, *mut c_void);

/// A function and the name it has in its library.
#[derive(Clone, Copy)]
pub(in super::super) struct Function<F> {
    pub name: &'static str,
    pub call: F,
}

/// Functions that come from one library.
pub(in super::super) trait Table: Sized + Send + Sync + 'static {
    /// Finds all functions, by the names of this runtime. The error is the first name that is missing.
    ///
    /// # Safety
    ///
    /// The library's symbols of these names must be functions of these types. The library must never be
    /// unloaded.
    unsafe fn find(library: &libloading::Library, runtime: usize) -> Result<Self, &'static str>;
}

/// Declares a table: a field for each function, with its arguments and its name in each runtime.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident: fn($($argument:ty),*) = $($name:literal)|+;)+ }) => {
        $(#[$doc])*
        pub(in crate::device) struct $table {
            $(pub $field: $crate::device::native::table::Function<
                unsafe extern "C" fn($($argument),*) -> $crate::device::native::table::Code,
            >,)+
        }

        impl $crate::device::native::table::Table for $table {
            unsafe fn find(library: &libloading::Library, runtime: usize) -> Result<Self, &'static str> {
                Ok($table { $($field: {
                    let name = [$($name),+][runtime];
                    // SAFETY: the caller says that this is the function's type.
                    let found = unsafe { library.get(name.as_bytes()) };
                    $crate::device::native::table::Function { name, call: *found.map_err(|_| name)? }
                },)+ })
            }
        }
    };
}
pub(in super::super) use functions;

functions! {
    /// The functions that both runtimes have, by their names in CUDA, then in HIP.
    Common {
        init: fn(u32) = "cuInit" | "hipInit";
        version: fn(*mut i32) = "cuDriverGetVersion" | "hipDriverGetVersion";
        device_count: fn(*mut i32) = "cuDeviceGetCount" | "hipGetDeviceCount";
        device: fn(*mut i32, i32) = "cuDeviceGet" | "hipDeviceGet";
        device_name: fn(*mut c_char, i32, i32) = "cuDeviceGetName" | "hipDeviceGetName";
        attribute: fn(*mut i32, i32, i32) = "cuDeviceGetAttribute" | "hipDeviceGetAttribute";
        memory: fn(*mut usize, *mut usize) = "cuMemGetInfo_v2" | "hipMemGetInfo";
        free: fn(Word, Word) = "cuMemFreeAsync" | "hipFreeAsync";
        alloc_now: fn(*mut Word, usize) = "cuMemAlloc_v2" | "hipMalloc";
        free_now: fn(Word) = "cuMemFree_v2" | "hipFree";
        alloc_pinned: fn(*mut *mut c_void, usize, u32) = "cuMemHostAlloc" | "hipHostMalloc";
        free_pinned: fn(*mut c_void) = "cuMemFreeHost" | "hipHostFree";
        copy_in: fn(Word, *const c_void, usize, Word) = "cuMemcpyHtoDAsync_v2" | "hipMemcpyHtoDAsync";
        copy_out: fn(*mut c_void, Word, usize, Word) = "cuMemcpyDtoHAsync_v2" | "hipMemcpyDtoHAsync";
        copy: fn(Word, Word, usize, Word) = "cuMemcpyDtoDAsync_v2" | "hipMemcpyDtoDAsync";
        fill: fn(Word, u8, usize, Word) = "cuMemsetD8Async" | "hipMemsetD8Async";
        priorities: fn(*mut i32, *mut i32) =
            "cuCtxGetStreamPriorityRange" | "hipDeviceGetStreamPriorityRange";
        stream: fn(*mut Word, u32, i32) = "cuStreamCreateWithPriority" | "hipStreamCreateWithPriority";
        destroy_stream: fn(Word) = "cuStreamDestroy_v2" | "hipStreamDestroy";
        synchronise: fn(Word) = "cuStreamSynchronize" | "hipStreamSynchronize";
        exchange_mode: fn(*mut i32) =
            "cuThreadExchangeStreamCaptureMode" | "hipThreadExchangeStreamCaptureMode";
        is_captured: fn(Word, *mut i32) = "cuStreamIsCapturing" | "hipStreamIsCapturing";
        event: fn(*mut Word, u32) = "cuEventCreate" | "hipEventCreateWithFlags";
        destroy_event: fn(Word) = "cuEventDestroy_v2" | "hipEventDestroy";
        record: fn(Word, Word) = "cuEventRecord" | "hipEventRecord";
        wait: fn(Word, Word, u32) = "cuStreamWaitEvent" | "hipStreamWaitEvent";
        query: fn(Word) = "cuEventQuery" | "hipEventQuery";
        synchronise_event: fn(Word) = "cuEventSynchronize" | "hipEventSynchronize";
        // Not cuLaunchHostFunc, which CUDA recommends: it never calls back once the device has failed, and a
        // task that awaits a result would sleep forever.
        call: fn(Word, Callback, *mut c_void, u32) = "cuStreamAddCallback" | "hipStreamAddCallback";
        load: fn(*mut Word, *const c_void, u32, *mut i32, *mut *mut c_void) =
            "cuModuleLoadDataEx" | "hipModuleLoadDataEx";
        entry: fn(*mut Word, Word, *const c_char) = "cuModuleGetFunction" | "hipModuleGetFunction";
        entry_attribute: fn(*mut i32, i32, Word) = "cuFuncGetAttribute" | "hipFuncGetAttribute";
        launch: fn(Word, u32, u32, u32, u32, u32, u32, u32, Word, *mut *mut c_void, *mut *mut c_void) =
            "cuLaunchKernel" | "hipModuleLaunchKernel";
        pointer: fn(*mut c_void, i32, Word) = "cuPointerGetAttribute" | "hipPointerGetAttribute";
    }
}
