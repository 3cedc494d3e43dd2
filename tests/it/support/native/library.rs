//! The functions of a driver library, by name; and which context of CUDA or device of HIP is current on a
//! thread.

use std::ffi::CStr;

use libloading::Library;

/// The code that a runtime's function returns.
pub type Code = i32;

/// The functions that wait for a device: by their purpose, or as real runtimes implement them (those that
/// free memory at once). Functions that allocate pinned memory may wait too, but are called only until there
/// is enough of it.
pub const BLOCKING: [&CStr; 8] = [
    c"cuEventSynchronize",
    c"cuStreamSynchronize",
    c"cuMemFree_v2",
    c"cuMemFreeHost",
    c"hipEventSynchronize",
    c"hipStreamSynchronize",
    c"hipFree",
    c"hipHostFree",
];

pub fn symbol<F: Copy>(library: &Library, name: &str) -> F {
    // SAFETY: the tests ask for functions by names that have these types.
    *unsafe { library.get::<F>(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub type Current = Box<dyn Fn() -> usize + Send + Sync>;

pub type MakeCurrent = Box<dyn Fn(Option<i32>) + Send + Sync>;

pub fn contexts_of_cuda(library: &'static Library) -> (Current, MakeCurrent) {
    let get: unsafe extern "C" fn(*mut usize) -> Code = symbol(library, "cuCtxGetCurrent");
    let set: unsafe extern "C" fn(usize) -> Code = symbol(library, "cuCtxSetCurrent");
    let primary: unsafe extern "C" fn(*mut usize, i32) -> Code = symbol(library, "cuDevicePrimaryCtxRetain");
    let current = move || {
        let mut context = 0;
        // SAFETY: the function writes a handle.
        assert_eq!(unsafe { get(&mut context) }, 0);
        context
    };
    let make_current = move |device: Option<i32>| {
        let mut context = 0;
        // SAFETY: the functions write and take handles.
        unsafe {
            if let Some(device) = device {
                assert_eq!(primary(&mut context, device), 0);
            }
            assert_eq!(set(context), 0);
        }
    };
    (Box::new(current), Box::new(make_current))
}

pub fn devices_of_hip(library: &'static Library) -> (Current, MakeCurrent) {
    let get: unsafe extern "C" fn(*mut i32) -> Code = symbol(library, "hipGetDevice");
    let set: unsafe extern "C" fn(i32) -> Code = symbol(library, "hipSetDevice");
    let current = move || {
        let mut device = 0;
        // SAFETY: the function writes a number.
        assert_eq!(unsafe { get(&mut device) }, 0);
        device as usize
    };
    let make_current = move |device: Option<i32>| {
        // SAFETY: the function takes a number.
        assert_eq!(unsafe { set(device.unwrap_or(0)) }, 0);
    };
    (Box::new(current), Box::new(make_current))
}
