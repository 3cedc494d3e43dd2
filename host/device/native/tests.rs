mod open_tests;
mod profile_tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cubecl_hip_sys as hip_headers;
use cudarc::driver::sys as cuda_headers;

use super::codes::OUT_OF_MEMORY;
use super::*;
use crate::device::driver_tests::conforms;
use crate::device::{Device, LoadedImage, cuda, hip};
use crate::{Error, ffi::DeviceType, images};

/// The library that stands in for CUDA's and HIP's. Cargo puts it next to the tests.
fn standin() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let name = format!("{}bowstring_standin{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    tests.parent().unwrap().join(name)
}

/// A device of the stand-in that no other test uses. Its number is `of` modulo 8, which selects the kind of
/// HIP device.
fn device(device_type: DeviceType, of: i64) -> Device {
    crate::device::testing::open_from(&standin(), device_type, number(of)).unwrap()
}

/// A device number that no other test uses.
fn number(of: i64) -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    NEXT.fetch_add(8, Ordering::Relaxed) + of
}

fn driver(device: &Device) -> Arc<dyn Driver> {
    device.as_gpu().unwrap().driver().clone()
}

#[test]
fn cuda_conforms() {
    for of in 0..8 {
        let device = device(DeviceType::Cuda, of);
        assert_eq!(device.name(), "stand-in, compute capability 7.5, CUDA 12.2");
        conforms(&*driver(&device));
    }
}

#[test]
fn hip_conforms_on_every_architecture() {
    for (of, width, name) in [
        (0, 64, "gfx90a, images for gfx90a"),
        (1, 32, "gfx1100, images for gfx11-generic"),
        (2, 64, "gfx942, images for gfx942"),
        (4, 32, "gfx1030, images for gfx10-3-generic"),
        (5, 32, "gfx1201, images for gfx12-generic"),
        (6, 64, "gfx950, images for gfx9-4-generic"),
    ] {
        let device = device(DeviceType::Rocm, of);
        assert_eq!(device.name(), format!("stand-in, {name}, HIP 6.4"));
        assert_eq!(driver(&device).width(), width);
        conforms(&*driver(&device));
    }
}

#[test]
fn the_installed_ones_conform() {
    for (kind, count) in [("cuda", Device::cuda_count()), ("rocm", Device::rocm_count())] {
        eprintln!("{kind}: {count} installed");
        for ordinal in 0..count {
            let device = if kind == "cuda" { Device::cuda(ordinal) } else { Device::rocm(ordinal) }.unwrap();
            conforms(&*driver(&device));
        }
    }
}

#[test]
fn what_is_not_there_is_no_device_with_a_reason() {
    let reason = |opened: crate::Result<Device>| match opened {
        Err(Error::NoDevice { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let open = |path: PathBuf, id| crate::device::testing::open_from(&path, DeviceType::Cuda, id);
    assert!(reason(open("/nowhere/libcuda.so".into(), 0)).contains("/nowhere/libcuda.so"));
    assert_eq!(reason(open(standin(), -1)), "there is no number -1 of 100000");
    // A library without the functions, which every system has.
    let other = if cfg!(target_os = "macos") { "libSystem.B.dylib" } else { "libc.so.6" };
    assert_eq!(reason(open(other.into(), 0)), "the driver is too old: it has no cuInit");
    let no_kernels = crate::device::testing::open_from(&standin(), DeviceType::Rocm, 3);
    let reason = reason(no_kernels);
    assert!(reason.starts_with("there are no kernels for \"gfx906\", only for gfx90a, gfx942, "), "{reason}");
}

#[test]
fn an_image_that_is_cut_off_is_an_error_that_says_so() {
    let device = device(DeviceType::Cuda, 0);
    let found = cuda::found_at(&standin());
    let native = Native::<cuda::Cuda>::look(found, device.place().device_id).unwrap();
    let text = images::find("bitmap", "sm_75").unwrap();
    for cut in [text.len() / 3, text.len() - 20] {
        let cut = [&text[..cut], &[0]].concat();
        // SAFETY: the text ends with a zero.
        let error = unsafe { native.load(&cut) }.unwrap_err();
        assert_eq!((error.failure.call, error.failure.code), ("cuModuleLoadDataEx", 218));
        assert!(!error.log.is_empty());
    }
    // SAFETY: no handles are passed.
    let error = unsafe { native.entry("no such family", "nor entry") }.unwrap_err();
    assert_eq!(error.failure.code, i64::from(NO_IMAGE));
}

#[test]
fn an_entry_alone_is_a_whole_image() {
    let device = device(DeviceType::Cuda, 0);
    let native = Native::<cuda::Cuda>::look(cuda::found_at(&standin()), device.place().device_id).unwrap();
    for (family, _) in images::names().filter(|(_, architecture)| *architecture == "sm_75") {
        let text = std::str::from_utf8(images::find(family, "sm_75").unwrap()).unwrap();
        // Only the head is outside the entries, so nothing is lost.
        let entry = |part: &str| cuda::alone(text, &part[..part.find('(').unwrap()]).unwrap();
        let mut parts = text.split("\n.visible .entry ");
        let head = parts.next().unwrap();
        let entries: Vec<String> = parts.map(entry).collect();
        let comment = |line: &&str| !line.starts_with("\t// ") && !line.is_empty();
        let lines = |text: &str| text.lines().filter(comment).count();
        let apart: usize = entries.iter().map(|entry| lines(entry) - lines(head)).sum();
        assert_eq!(lines(text), lines(head) + apart, "{family}");
        let smallest = entries.iter().min_by_key(|entry| entry.len()).unwrap();
        // SAFETY: the text ends with a zero.
        unsafe { native.load(format!("{smallest}\0").as_bytes()) }.unwrap();
    }
    assert_eq!(cuda::alone("", "any"), None);
}

#[test]
fn an_entry_that_a_machine_lacks_is_unsupported() {
    use bowstring_kernels::memory::{In, Out};
    use bowstring_kernels::reduce::bitmap::{NULL_COUNT, NullCount};
    use bowstring_kernels::target::{Entry, Makers};
    let args = NullCount { maps: In::absent(), count: 0, parts: 1, nulls: Out::absent() };
    for (of, own, others) in
        [(DeviceType::Cuda, Makers::Nvidia, Makers::Amd), (DeviceType::Rocm, Makers::Amd, Makers::Nvidia)]
    {
        let stream = device(of, 0).stream().unwrap();
        let mut pass = crate::pass::Pass::begin("trial", &stream).unwrap();
        let of_makers = |makers| {
            // A wave that finds nothing to do.
            let entry = Entry { makers, waves: |_, _| 1, ..NULL_COUNT[0] };
            &*Box::leak(Box::new(entry))
        };
        pass.launch(of_makers(own), &args).unwrap();
        let refused = pass.launch(of_makers(others), &args).unwrap_err();
        let name = NULL_COUNT[0].name;
        let expected = Error::Unsupported { operation: "trial", what: name.into(), device: of };
        assert_eq!(refused, expected);
        pass.finish().unwrap();
    }
}

#[test]
fn who_waits_is_called_also_when_the_work_has_failed() {
    for of in [DeviceType::Cuda, DeviceType::Rocm] {
        let driver = driver(&device(of, 0));
        let called = Arc::new(AtomicI64::new(0));
        // SAFETY: the stream is live until the end; the address belongs to no allocation, as the test
        // intends.
        unsafe {
            let stream = driver.stream(0).unwrap();
            let memory = driver.alloc(256, stream).unwrap();
            crate::device::driver_tests::fault(&*driver, stream, memory);
            let count = called.clone();
            let count_it = move || {
                count.fetch_add(1, Ordering::SeqCst);
            };
            let queued = driver.call(stream, Box::new(count_it));
            assert!(driver.synchronise(stream).is_err(), "{of:?}");
            // A call that comes too late fails instead.
            assert_eq!(called.load(Ordering::SeqCst), i64::from(queued.is_ok()), "{of:?}");
            let _ = driver.destroy_stream(stream);
        }
    }
}

#[test]
fn every_architecture_finds_its_images() {
    for (name, expected) in [
        ("gfx90a", Some("gfx90a")),
        ("gfx90a:sramecc+:xnack-", Some("gfx90a")),
        ("gfx942", Some("gfx942")),
        ("gfx950", Some("gfx9-4-generic")),
        ("gfx1030", Some("gfx10-3-generic")),
        ("gfx1036", Some("gfx10-3-generic")),
        ("gfx1100", Some("gfx11-generic")),
        ("gfx1151", Some("gfx11-generic")),
        ("gfx1201", Some("gfx12-generic")),
        // These have other instructions, although their names look similar.
        ("gfx1250", None),
        ("gfx1251", None),
        ("gfx1170", None),
        ("gfx1172", None),
        ("gfx1037", None),
        ("gfx90", None),
        ("gfx940", None),
        ("gfx906", None),
        ("gfx908", None),
        ("gfx1010", None),
        ("sm_75", None),
    ] {
        assert_eq!(images::architecture_of(name).map(|of| of.name), expected, "{name}");
    }
    let families = |on: &str| images::names().filter(|(_, shipped)| *shipped == on).count();
    assert!(images::names().all(|(_, on)| families(on) == families("sm_75")), "every family for each");
}

/// Asks a device for every kernel. Each image is loaded once, however often its kernels are requested.
fn load_everything(device: &Device) -> Vec<LoadedImage> {
    let driver = driver(device);
    let mut names = std::collections::BTreeSet::new();
    for entry in bowstring_kernels::every_entry().chain(bowstring_kernels::every_entry().take(5)) {
        // SAFETY: the images that are built in are whole.
        let loaded = unsafe { driver.entry(entry.family(), entry.name()) };
        loaded.unwrap_or_else(|failed| panic!("{}: {failed:?}", entry.name()));
        let by_entry = device.place().device_type == DeviceType::Cuda;
        names.insert(if by_entry { entry.name() } else { entry.family() });
    }
    let loaded = device.images_loaded();
    assert_eq!(loaded.len(), names.len(), "each once");
    assert!(loaded.iter().all(|image| names.contains(image.name) && !image.time.is_zero()));
    loaded
}

#[test]
fn every_kernel_is_loaded_once_and_how_long_that_took_is_known() {
    for of in [(DeviceType::Cuda, 0), (DeviceType::Rocm, 0), (DeviceType::Rocm, 1)] {
        let device = device(of.0, of.1);
        assert_eq!(device.images_loaded(), []);
        load_everything(&device);
        // Opening the device again finds the images that were loaded.
        let again = crate::device::testing::separate(&device).unwrap();
        assert_eq!(load_everything(&again), device.images_loaded());
    }
}

/// Prints the load times on a GPU, by family. `CUDA_CACHE_DISABLE=1` excludes the driver's cache on disk.
#[test]
fn every_kernel_loads_on_those_that_are_installed() {
    use std::io::Write;
    let installed =
        [(DeviceType::Cuda, "cuda", Device::cuda_count()), (DeviceType::Rocm, "rocm", Device::rocm_count())];
    for (kind, name, _) in installed.into_iter().filter(|(_, _, count)| *count > 0) {
        let device = Device::open(kind, 0).unwrap();
        let mut families = std::collections::BTreeMap::<_, Vec<_>>::new();
        for image in load_everything(&device) {
            families.entry(image.family).or_default().push(image.time);
        }
        let times = |all: &[std::time::Duration]| {
            let (sum, longest) = (all.iter().sum::<std::time::Duration>(), all.iter().max());
            format!("{} in {sum:.1?}, the longest {:.1?}", all.len(), longest.unwrap())
        };
        // Written around the test harness, which would capture it.
        for (family, all) in &families {
            let _ = writeln!(std::io::stderr(), "{name}: loaded {family}: {}", times(all));
        }
        let all: Vec<_> = families.into_values().flatten().collect();
        let _ = writeln!(std::io::stderr(), "{name}: loaded all images: {}", times(&all));
    }
}

/// The sizes of a function's arguments and result, in bytes.
trait Shape {
    fn shape(&self) -> Vec<usize>;
}

macro_rules! shapes {
    ($($($argument:ident)*;)*) => { $(
        impl<R, $($argument),*> Shape for unsafe fn($($argument),*) -> R {
            fn shape(&self) -> Vec<usize> {
                vec![size_of::<R>(), $(size_of::<$argument>()),*]
            }
        }
        impl<R, $($argument),*> Shape for unsafe extern "C" fn($($argument),*) -> R {
            fn shape(&self) -> Vec<usize> {
                vec![size_of::<R>(), $(size_of::<$argument>()),*]
            }
        }
    )* };
}
shapes! { ; A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G H I J K; }

/// The type of function as which each crate declares a header's function.
macro_rules! published {
    (cuda_headers($($argument:tt),*)) => { unsafe fn($($argument),*) -> _ };
    (hip_headers($($argument:tt),*)) => { unsafe extern "C" fn($($argument),*) -> _ };
}

/// Whether a table's functions have the names and shapes that the published headers give them.
macro_rules! as_published {
    ($table:expr, $headers:ident: $($field:ident = $name:ident($($argument:tt),*);)*) => { $(
        assert_eq!($table.$field.name, stringify!($name));
        let published = $headers::$name as published!($headers($($argument),*));
        assert_eq!($table.$field.call.shape(), published.shape(), stringify!($name));
    )* };
}

#[test]
fn the_functions_are_those_of_the_published_headers() {
    let (cuda, hip) = (cuda::found_at(&standin()), hip::found_at(&standin()));
    as_published! { cuda.common, cuda_headers:
        init = cuInit(_); version = cuDriverGetVersion(_); device_count = cuDeviceGetCount(_);
        device = cuDeviceGet(_, _); device_name = cuDeviceGetName(_, _, _);
        attribute = cuDeviceGetAttribute(_, _, _); memory = cuMemGetInfo_v2(_, _);
        free = cuMemFreeAsync(_, _);
        alloc_now = cuMemAlloc_v2(_, _); free_now = cuMemFree_v2(_); alloc_pinned = cuMemHostAlloc(_, _, _);
        free_pinned = cuMemFreeHost(_); copy_in = cuMemcpyHtoDAsync_v2(_, _, _, _);
        copy_out = cuMemcpyDtoHAsync_v2(_, _, _, _); copy = cuMemcpyDtoDAsync_v2(_, _, _, _);
        fill = cuMemsetD8Async(_, _, _, _); priorities = cuCtxGetStreamPriorityRange(_, _);
        stream = cuStreamCreateWithPriority(_, _, _); destroy_stream = cuStreamDestroy_v2(_);
        exchange_mode = cuThreadExchangeStreamCaptureMode(_); is_captured = cuStreamIsCapturing(_, _);
        synchronise = cuStreamSynchronize(_); event = cuEventCreate(_, _); destroy_event = cuEventDestroy_v2(_);
        record = cuEventRecord(_, _); wait = cuStreamWaitEvent(_, _, _); query = cuEventQuery(_);
        synchronise_event = cuEventSynchronize(_); call = cuStreamAddCallback(_, _, _, _);
        load = cuModuleLoadDataEx(_, _, _, _, _); entry = cuModuleGetFunction(_, _, _);
        entry_attribute = cuFuncGetAttribute(_, _, _);
        launch = cuLaunchKernel(_, _, _, _, _, _, _, _, _, _, _); pointer = cuPointerGetAttribute(_, _, _);
    }
    as_published! { cuda.own, cuda_headers:
        current = cuCtxGetCurrent(_); make_current = cuCtxSetCurrent(_); primary = cuDevicePrimaryCtxRetain(_, _);
        of_stream = cuStreamGetCtx(_, _); copy_from = cuMemcpyPeerAsync(_, _, _, _, _, _);
        pool = cuMemPoolCreate(_, _); set_pool = cuMemPoolSetAttribute(_, _, _);
        alloc = cuMemAllocFromPoolAsync(_, _, _, _); trim = cuMemPoolTrimTo(_, _);
    }
    as_published! { hip.common, hip_headers:
        init = hipInit(_); version = hipDriverGetVersion(_); device_count = hipGetDeviceCount(_);
        device = hipDeviceGet(_, _); device_name = hipDeviceGetName(_, _, _);
        attribute = hipDeviceGetAttribute(_, _, _); memory = hipMemGetInfo(_, _);
        free = hipFreeAsync(_, _);
        alloc_now = hipMalloc(_, _); free_now = hipFree(_); alloc_pinned = hipHostMalloc(_, _, _);
        free_pinned = hipHostFree(_); copy_in = hipMemcpyHtoDAsync(_, _, _, _);
        copy_out = hipMemcpyDtoHAsync(_, _, _, _); copy = hipMemcpyDtoDAsync(_, _, _, _);
        fill = hipMemsetD8Async(_, _, _, _); priorities = hipDeviceGetStreamPriorityRange(_, _);
        stream = hipStreamCreateWithPriority(_, _, _); destroy_stream = hipStreamDestroy(_);
        exchange_mode = hipThreadExchangeStreamCaptureMode(_); is_captured = hipStreamIsCapturing(_, _);
        synchronise = hipStreamSynchronize(_); event = hipEventCreateWithFlags(_, _);
        destroy_event = hipEventDestroy(_); record = hipEventRecord(_, _); wait = hipStreamWaitEvent(_, _, _);
        query = hipEventQuery(_); synchronise_event = hipEventSynchronize(_); call = hipStreamAddCallback(_, _, _, _);
        load = hipModuleLoadDataEx(_, _, _, _, _); entry = hipModuleGetFunction(_, _, _);
        entry_attribute = hipFuncGetAttribute(_, _, _);
        launch = hipModuleLaunchKernel(_, _, _, _, _, _, _, _, _, _, _); pointer = hipPointerGetAttribute(_, _, _);
    }
    as_published! { hip.own, hip_headers:
        alloc = hipMallocAsync(_, _, _); current = hipGetDevice(_); make_current = hipSetDevice(_); of_stream = hipStreamGetDevice(_, _);
        copy_from = hipMemcpyPeerAsync(_, _, _, _, _, _); properties = hipGetDevicePropertiesR0600(_, _);
        runtime_version = hipRuntimeGetVersion(_); last_error = hipGetLastError();
    }
}

#[test]
fn the_numbers_are_those_of_the_published_headers() {
    use cuda_headers::{CUdevice_attribute as Device, CUfunction_attribute as Entry};
    use cuda_headers::{CUpointer_attribute as Pointer, CUresult};
    assert_eq!(REGISTERS, Entry::CU_FUNC_ATTRIBUTE_NUM_REGS as i32);
    assert_eq!(LOCAL_BYTES, Entry::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES as i32);
    assert_eq!(cuda::Cuda::ORDERED_MEMORY, Device::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as i32);
    assert_eq!(cuda::CAPABILITY_MAJOR, Device::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as i32);
    assert_eq!(cuda::CAPABILITY_MINOR, Device::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as i32);
    assert_eq!(cuda::MAPS_HOST_MEMORY, Device::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY as i32);
    assert_eq!(cuda::UNIFIED_ADDRESSING, Device::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING as i32);
    assert_eq!(cuda::PINNED, cuda_headers::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as i32);
    assert_eq!(cuda::ON_DEVICE, cuda_headers::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as i32);
    let threshold = cuda_headers::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    assert_eq!(cuda::RELEASE_THRESHOLD, threshold as i32);
    assert_eq!(size_of::<cuda::PoolProperties>(), size_of::<cuda_headers::CUmemPoolProps>());
    assert_eq!(MEMORY_TYPE, Pointer::CU_POINTER_ATTRIBUTE_MEMORY_TYPE as i32);
    assert_eq!(IS_MANAGED, Pointer::CU_POINTER_ATTRIBUTE_IS_MANAGED as i32);
    assert_eq!(DEVICE_ORDINAL, Pointer::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as i32);
    assert_eq!(cuda::HOST_MEMORY, cuda_headers::CUmemorytype::CU_MEMORYTYPE_HOST as u32);
    assert_eq!(PORTABLE, cuda_headers::CU_MEMHOSTALLOC_PORTABLE);
    assert_eq!(NON_BLOCKING, cuda_headers::CUstream_flags::CU_STREAM_NON_BLOCKING as u32);
    assert_eq!(NO_TIMING, cuda_headers::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32);
    assert_eq!(ERROR_LOG, cuda_headers::CUjit_option::CU_JIT_ERROR_LOG_BUFFER as i32);
    assert_eq!(ERROR_LOG_BYTES, cuda_headers::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as i32);
    for (ours, cuda, hip) in [
        (INVALID_VALUE, CUresult::CUDA_ERROR_INVALID_VALUE, hip_headers::hipError_t_hipErrorInvalidValue),
        (OUT_OF_MEMORY, CUresult::CUDA_ERROR_OUT_OF_MEMORY, hip_headers::hipError_t_hipErrorOutOfMemory),
        (
            INVALID_CONTEXT,
            CUresult::CUDA_ERROR_INVALID_CONTEXT,
            hip_headers::hipError_t_hipErrorInvalidContext,
        ),
        (NO_IMAGE, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, hip_headers::hipError_t_hipErrorNoBinaryForGpu),
        (NOT_READY, CUresult::CUDA_ERROR_NOT_READY, hip_headers::hipError_t_hipErrorNotReady),
        (
            CAPTURE_IMPLICIT,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
            hip_headers::hipError_t_hipErrorStreamCaptureImplicit,
        ),
    ] {
        assert_eq!((ours, ours), (cuda as i32, hip as i32));
    }
    use cuda_headers::CUstreamCaptureMode as Mode;
    assert_eq!(RELAXED, Mode::CU_STREAM_CAPTURE_MODE_RELAXED as i32);
    use hip_headers as h;
    for (ours, theirs) in [
        (hip::Hip::ORDERED_MEMORY as u32, h::hipDeviceAttribute_t_hipDeviceAttributeMemoryPoolsSupported),
        (hip::WAVE_WIDTH as u32, h::hipDeviceAttribute_t_hipDeviceAttributeWarpSize),
        (REGISTERS as u32, h::hipFunction_attribute_HIP_FUNC_ATTRIBUTE_NUM_REGS),
        (LOCAL_BYTES as u32, h::hipFunction_attribute_HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        (MEMORY_TYPE as u32, h::hipPointer_attribute_HIP_POINTER_ATTRIBUTE_MEMORY_TYPE),
        (IS_MANAGED as u32, h::hipPointer_attribute_HIP_POINTER_ATTRIBUTE_IS_MANAGED),
        (DEVICE_ORDINAL as u32, h::hipPointer_attribute_HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
        (hip::HOST_MEMORY, h::hipMemoryType_hipMemoryTypeHost),
        (0, h::hipMemoryType_hipMemoryTypeUnregistered),
        (RELAXED as u32, h::hipStreamCaptureMode_hipStreamCaptureModeRelaxed),
        (PORTABLE, h::hipHostMallocPortable),
        (NON_BLOCKING, h::hipStreamNonBlocking),
        (NO_TIMING, h::hipEventDisableTiming),
        (ERROR_LOG as u32, h::hipJitOption_hipJitOptionErrorLogBuffer),
        (ERROR_LOG_BYTES as u32, h::hipJitOption_hipJitOptionErrorLogBufferSizeBytes),
    ] {
        assert_eq!(ours, theirs);
    }
    assert_eq!(hip::PROPERTIES_BYTES, size_of::<h::hipDeviceProp_tR0600>());
    assert_eq!(hip::ARCHITECTURE_AT, std::mem::offset_of!(h::hipDeviceProp_tR0600, gcnArchName));
}
