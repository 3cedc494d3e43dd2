//! The device that a session's configuration names.

use std::sync::{LazyLock, Mutex, PoisonError};

use bowstring::ffi::DeviceType;
use bowstring::{Device, Stream};
use datafusion::error::{DataFusionError, Result};

use crate::error::external;

/// Emulated devices of tests, by name.
static NAMED: LazyLock<Mutex<Vec<(String, Device)>>> = LazyLock::new(Mutex::default);

/// Gives a device a name that `bowstring.device` accepts: for a device with a custom allocator or limit, or a
/// test's own emulated one. Naming a device again replaces the earlier one.
pub fn name_device(name: impl Into<String>, device: &Device) {
    let name = name.into();
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|(other, _)| *other != name);
    named.push((name, device.clone()));
}

/// Opens the device of this name; `None` if the name turns our operators off.
pub fn open(name: &str) -> Result<Option<Device>> {
    if let Some((_, device)) =
        NAMED.lock().unwrap_or_else(PoisonError::into_inner).iter().find(|(other, _)| other == name)
    {
        return Ok(Some(device.clone()));
    }
    let unknown = || {
        let known = "auto, cpu, cuda:0, rocm:0, emulator or off";
        DataFusionError::Configuration(format!("bowstring.device is {name:?}, and not {known}"))
    };
    let device = match name.split_once(':') {
        None if name == "off" => return Ok(None),
        None if name == "auto" => first(),
        None if name == "cpu" => Device::cpu(),
        None if name == "emulator" => Device::emulated(),
        Some((kind, number)) => {
            let kind = match kind {
                "cuda" => DeviceType::Cuda,
                "rocm" => DeviceType::Rocm,
                _ => return Err(unknown()),
            };
            Device::open(kind, number.parse().map_err(|_| unknown())?).map_err(external)?
        }
        None => return Err(unknown()),
    };
    Ok(Some(device))
}

/// The first GPU that opens, else the CPU. The result is cached: probing takes time, and devices do not
/// change while a process runs.
fn first() -> Device {
    static FIRST: LazyLock<Device> = LazyLock::new(|| {
        let gpus = [DeviceType::Cuda, DeviceType::Rocm];
        gpus.into_iter().find_map(|kind| Device::open(kind, 0).ok()).unwrap_or_else(Device::cpu)
    });
    FIRST.clone()
}

/// A new stream on a device; on the CPU, the calling thread's stream.
pub(crate) fn stream_of(device: &Device) -> Result<Stream> {
    if is_host(device) { Ok(Stream::cpu()) } else { device.stream().map_err(external) }
}

/// Whether a device computes in host memory, on DataFusion's own threads.
pub(crate) fn is_host(device: &Device) -> bool {
    device.place().device_type == DeviceType::Cpu
}
