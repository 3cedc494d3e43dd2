//! Tests against the stand-in's profiles, which accept and refuse the same images as real versions of the
//! runtimes.

use std::ffi::{CString, c_char};
use std::sync::LazyLock;

use arrow_array::Int64Array;

use super::*;
use crate::exchange::{from_arrow, to_arrow};
use crate::images::{ARCHITECTURES, Architecture};

const HIP: [(&str, (i32, i32)); 5] = [
    ("hip-6.0", (6, 0)),
    ("hip-6.3", (6, 3)),
    ("hip-6.4", (6, 4)),
    ("hip-7.2", (7, 2)),
    ("hip-windows", (7, 1)),
];

/// The stand-in's functions for tests.
struct Control {
    be: unsafe extern "C" fn(*const c_char, *const c_char) -> bool,
    calls: unsafe extern "C" fn(*const c_char) -> u64,
    delay: unsafe extern "C" fn(u64),
    capacity: unsafe extern "C" fn(u32, i32, usize),
}

static CONTROL: LazyLock<Control> = LazyLock::new(|| {
    // SAFETY: the stand-in, whose functions have these types; it is never unloaded.
    unsafe {
        let library = Box::leak(Box::new(libloading::Library::new(standin()).unwrap()));
        Control {
            be: *library.get(b"standin_be").unwrap(),
            calls: *library.get(b"standin_calls").unwrap(),
            delay: *library.get(b"standin_delay").unwrap(),
            capacity: *library.get(b"standin_capacity").unwrap(),
        }
    }
});

/// Makes the stand-in behave as one version of a runtime, and every AMD GPU as one model, on this thread
/// until it is dropped.
struct Profile;

impl Profile {
    fn of(profile: &str, gpu: &str) -> Profile {
        let [profile, gpu] = [profile, gpu].map(|name| CString::new(name).unwrap());
        // SAFETY: both end with a zero.
        assert!(unsafe { (CONTROL.be)(profile.as_ptr(), gpu.as_ptr()) }, "there is no {profile:?}");
        Profile
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // SAFETY: both end with a zero.
        unsafe { (CONTROL.be)(c"".as_ptr(), c"".as_ptr()) };
    }
}

/// The number of calls of a function by this thread.
fn calls(name: &str) -> u64 {
    let name = CString::new(name).unwrap();
    // SAFETY: it ends with a zero.
    unsafe { (CONTROL.calls)(name.as_ptr()) }
}

/// Opens a new device of the stand-in; the error says why it cannot.
fn opened(device_type: DeviceType, of: i64) -> Result<Device, String> {
    match crate::device::testing::open_from(&standin(), device_type, number(of)) {
        Ok(device) => Ok(device),
        Err(Error::NoDevice { reason, .. }) => Err(reason),
        Err(other) => panic!("{other:?}"),
    }
}

/// Loads a kernel of each family; the error is the log of the first refusal.
fn load_each_family(device: &Device) -> Result<(), String> {
    let (driver, mut families) = (driver(device), std::collections::BTreeSet::new());
    for entry in bowstring_kernels::every_entry().filter(|entry| families.insert(entry.family())) {
        // SAFETY: the images that are built in are whole.
        let loaded = unsafe { driver.entry(entry.family(), entry.name()) };
        loaded.map_err(|failed| failed.log)?;
    }
    Ok(())
}

#[test]
fn every_gpu_of_every_rocm_loads_everything_or_is_told_which_version_does() {
    for (profile, version) in HIP {
        for images in ARCHITECTURES.iter().filter(|images| !images.gpus.is_empty()) {
            let late = profile == "hip-windows" && ["gfx9-4-generic", "gfx12-generic"].contains(&images.name);
            for gpu in images.gpus {
                let _profile = Profile::of(profile, gpu);
                let outcome = opened(DeviceType::Rocm, 0).and_then(|device| load_each_family(&device));
                let context = format!("{gpu} on {profile}: {outcome:?}");
                let (major, minor) = images.since;
                match outcome {
                    Ok(()) => assert!(version >= images.since && !late, "{context}"),
                    Err(why) => {
                        assert!(why.contains(&format!("ROCm {major}.{minor}")) != late, "{context}");
                        assert!(why.contains(&format!("{}.{}", version.0, version.1)), "{context}");
                        assert!(version < images.since || late, "{context}");
                        assert_eq!(why.contains("for Windows from June 2026 on"), late, "{context}");
                    }
                }
            }
        }
        for gpu in ["gfx1250", "gfx1251", "gfx1170", "gfx1172", "gfx908", "gfx1010"] {
            let _profile = Profile::of(profile, gpu);
            let why = opened(DeviceType::Rocm, 0).unwrap_err();
            assert!(
                why.starts_with(&format!("there are no kernels for \"{gpu}\", only for gfx90a, ")),
                "{why}"
            );
        }
    }
}

#[test]
fn every_cuda_loads_everything_or_is_told_which_driver_does() {
    let _profile = Profile::of("cuda-11.2", "");
    let why = opened(DeviceType::Cuda, 0).unwrap_err();
    assert_eq!(why, "the kernels' PTX needs CUDA 11.4 (NVIDIA's driver 470) or newer, and this is CUDA 11.2");
    for profile in ["cuda-11.4", "cuda-12.2", "cuda-13"] {
        let _profile = Profile::of(profile, "");
        assert_eq!(load_each_family(&opened(DeviceType::Cuda, 0).unwrap()), Ok(()), "{profile}");
    }
}

/// The version that opening a device requires is the lowest possible: the driver before it refuses the text.
#[test]
fn ptx_that_is_newer_than_the_driver_is_refused_by_it() {
    let device = device(DeviceType::Cuda, 0);
    let _profile = Profile::of("cuda-11.2", "");
    // SAFETY: the images that are built in are whole.
    let refused = unsafe { driver(&device).entry("bitmap", "null_count") }.unwrap_err();
    assert_eq!(refused.failure.code, 222);
}

/// The list names the first ROCm that loads the images' version of code object.
#[test]
fn images_are_code_objects_of_the_version_that_the_list_says() {
    let first = |images: &Architecture, abi: u8| match (abi, images.name.ends_with("-generic")) {
        (_, true) => (6, 4),
        (3, false) => (6, 0),
        (4, false) => (6, 3),
        other => panic!("{images:?}: {other:?}"),
    };
    for images in ARCHITECTURES.iter().filter(|images| !images.gpus.is_empty()) {
        for (family, _) in images::names().filter(|(_, of)| *of == images.name) {
            let image = images::find(family, images.name).unwrap();
            assert_eq!(first(images, image[8]), images.since, "{family}.{}", images.name);
        }
    }
}

#[test]
fn rocm_is_asked_for_plain_memory() {
    let device = device(DeviceType::Rocm, 0);
    let before = ["hipMallocAsync", "hipFreeAsync", "hipMalloc", "hipFree"].map(calls);
    conforms(&*driver(&device));
    let stream = device.stream().unwrap();
    let there = stream.upload(&from_arrow(&Int64Array::from_iter_values(0..5000)).unwrap()).unwrap();
    to_arrow(&stream.download(&there).unwrap()).unwrap();
    drop(there);
    device.set_memory_kept(0);
    let after = ["hipMallocAsync", "hipFreeAsync", "hipMalloc", "hipFree"].map(calls);
    assert_eq!(after[..2], before[..2], "memory in stream order was not asked for");
    assert!(after[2] > before[2] && after[3] > before[3], "{before:?} {after:?}");
}

/// Before CUDA 11.5 memory in stream order is not used; where a device has none, no call for it is made.
#[test]
fn cuda_is_asked_for_plain_memory_where_the_other_is_not_to_be_had() {
    for (profile, ordered) in [("cuda-11.4", false), ("cuda-12.2", true), ("cuda-13,no-pools", false)] {
        let _profile = Profile::of(profile, "");
        let device = device(DeviceType::Cuda, 0);
        let before =
            ["cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemAlloc_v2", "cuMemFree_v2"].map(calls);
        conforms(&*driver(&device));
        let after = ["cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemAlloc_v2", "cuMemFree_v2"].map(calls);
        let more: Vec<bool> = before.iter().zip(after).map(|(before, after)| after > *before).collect();
        assert_eq!(more, [ordered, ordered, !ordered, !ordered], "{profile}");
    }
}

/// The allocation that the variable selects works on the stand-in's HIP.
#[test]
fn memory_in_stream_order_is_to_be_had_on_rocm() {
    let device = device(DeviceType::Rocm, 0);
    let found = hip::found_at(&standin());
    let mut native = Native::<hip::Hip>::look(found, device.place().device_id).unwrap();
    assert!(!native.ordered_memory);
    native.ordered_memory = true;
    conforms(&native);
}

/// As with AMD's allocator, a block that was allocated on one stream, used on another and freed on a third
/// goes back to the first at once, and new memory loses writes that come before it is usable. That is why we
/// do not use it by default.
#[test]
fn memory_in_stream_order_is_as_it_is_on_rocm() {
    let _profile = Profile::of("hip-7.2", "");
    let device = device(DeviceType::Rocm, 0);
    let found = hip::found_at(&standin());
    let mut native = Native::<hip::Hip>::look(found, device.place().device_id).unwrap();
    native.ordered_memory = true;
    // SAFETY: all handles are live, and addresses are within their allocations.
    unsafe {
        let [first, service] = [native.stream(0).unwrap(), native.stream(0).unwrap()];
        let lost = |_| {
            let mut byte = 1;
            let block = native.alloc(4096, first).unwrap();
            native.fill(block, 7, 4096, first).unwrap();
            native.synchronise(first).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(4));
            native.copy_out(&mut byte, block, 1, first).unwrap();
            native.synchronise(first).unwrap();
            byte == 0
        };
        // On a busy machine the write may come late enough to be kept, so this tries several times.
        assert!((0..100).any(lost), "what is written too early is lost");
        let block = native.alloc(4096, first).unwrap();
        native.free(block, service).unwrap();
        assert_ne!(native.alloc(8192, first).unwrap(), block);
        assert_eq!(native.alloc(4096, first).unwrap(), block, "at once");
    }
}

/// The runtime has freed memory again only once the freeing stream has reached the free.
#[test]
fn memory_that_is_on_its_way_back_is_waited_for() {
    // This thread makes the device's service stream, which frees memory, and makes it slow. SAFETY: the
    // functions take numbers.
    unsafe { (CONTROL.delay)(20_000) };
    let device = device(DeviceType::Cuda, 0);
    // SAFETY: as above.
    unsafe {
        (CONTROL.delay)(0);
        (CONTROL.capacity)(0, device.place().device_id as i32, 3 << 20);
    }
    let (stream, before) = (device.stream().unwrap(), calls("cuMemPoolTrimTo"));
    let upload = |rows: i64| stream.upload(&from_arrow(&Int64Array::from_iter_values(0..rows)).unwrap());
    for rows in [1 << 18, 3 << 16, 1 << 18, 3 << 16] {
        let there = upload(rows).unwrap_or_else(|error| panic!("{rows} rows: {error}"));
        there.wait().unwrap();
    }
    assert!(calls("cuMemPoolTrimTo") > before, "another library may have CUDA's pool keep what is freed");
    let full = upload(1 << 19);
    assert!(matches!(full, Err(Error::OutOfMemory { .. })), "{full:?}");
}

/// CUDA's pool keeps what we free, and other users of the device lack it, as much as our own pool may keep: a
/// quarter of the device's memory, or what the program says.
#[test]
fn memory_that_is_not_kept_goes_back_to_the_system() {
    const MIB: usize = 1 << 20;
    let found = cuda::found_at(&standin());
    let number = number(0);
    // SAFETY: the function takes numbers.
    unsafe { (CONTROL.capacity)(0, number as i32, 16 * MIB) };
    let device = crate::device::testing::open_from(&standin(), DeviceType::Cuda, number).unwrap();
    let stream = device.stream().unwrap();
    let upload = || stream.upload(&from_arrow(&Int64Array::from(vec![7; 2 * MIB / 8])).unwrap()).unwrap();
    let many = [upload(), upload(), upload()];
    stream.synchronise().unwrap();
    drop(many);
    assert_eq!(device.memory_usage().kept, 4 * MIB, "{:?}", device.memory_usage());

    let mut other = Native::<cuda::Cuda>::look(found, number).unwrap();
    other.ordered_memory = false;
    // SAFETY: memory that nothing uses, and a live stream.
    unsafe {
        let theirs = other.stream(0).unwrap();
        stream.synchronise().unwrap();
        // The service stream frees memory in its own time.
        let got = |bytes| {
            (0..1000).find_map(|_| {
                stream.synchronise().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
                other.alloc(bytes, theirs).ok()
            })
        };
        let most = got(12 * MIB).unwrap();
        assert!(other.alloc(MIB, theirs).unwrap_err().out_of_memory);
        device.set_memory_kept(0);
        let rest = got(4 * MIB).unwrap();
        for memory in [most, rest] {
            other.free(memory, theirs).unwrap();
        }
        other.destroy_stream(theirs).unwrap();
    }
}
