//! L1: the C structs of the Arrow device interface, and nothing about drivers or kernels.

mod device_type;

pub use device_type::DeviceType;
