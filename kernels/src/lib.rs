//! Device kernels. Every body is written once, against the vocabulary of [`target`]. It is built for each GPU
//! target (see `ptx/build.sh`), and for the host, where it is the emulator and the definition.
//!
//! An example shows the contract with the host library:
//!
//! ```
//! use bowstring_kernels::reduce::bitmap::{NULL_COUNT, NullCount, NullCountRow};
//! use bowstring_kernels::memory::{In, Out, TableRow};
//! use bowstring_kernels::target::{AnyEntry, Args, Faults};
//!
//! // Buffers: an address and a length in bytes. On a GPU, device memory; here, the host's.
//! let validity = [0b1111_0101u8, 0b0000_0001];
//! let (words, offset) = In::bitmap(validity.as_ptr().expose_provenance() as u64, 2, 0);
//! let table = [NullCountRow { words, offset, len: 9 }.words()].concat();
//! let mut nulls = [0u64];
//! let args = NullCount {
//!     maps: In::new(table.as_ptr().expose_provenance() as u64, 32),
//!     count: 1,
//!     parts: 1,
//!     nulls: Out::new(nulls.as_mut_ptr().expose_provenance() as u64, 8),
//! };
//!
//! // A GPU driver finds `entry.name` in the image of `entry.family`; its blocks have `BLOCK` threads:
//! let entry = &NULL_COUNT[0];
//! let mut words = vec![0; NullCount::ARGUMENTS.len()];
//! args.pack(&mut words);
//!
//! // The emulator runs the same arguments, boxed if it likes, on a queue's thread, at width 32 or 64:
//! let boxed: Box<dyn std::any::Any + Send> = Box::new(args);
//! let faults = Faults::new();
//! // SAFETY: every buffer above is alive, initialised, exposed, and as long as was said.
//! unsafe { entry.emulate(&*boxed, 32, 0..1, &faults) };
//! assert_eq!((nulls[0], faults.first()), (2, None));
//! ```
#![no_std]
// `%` is the usual operator in code about bits and words, and says the same.
#![allow(clippy::manual_is_multiple_of)]
// Loops over a few registers unroll only if they are indexed: an iterator over the registers would put them
// in memory.
#![allow(clippy::needless_range_loop)]
#![cfg_attr(
    any(target_arch = "nvptx64", target_arch = "amdgpu"),
    feature(abi_gpu_kernel, link_llvm_intrinsics)
)]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx, asm_experimental_arch))]
#![cfg_attr(target_arch = "amdgpu", feature(stdarch_amdgpu))]
// `In` and `Out` are transparent pointers, which the ABI passes as pointers. An image holds one family, so
// code that only other families use is dead in it. The host's build makes the documentation.
#![cfg_attr(
    any(target_arch = "nvptx64", target_arch = "amdgpu"),
    allow(internal_features, improper_gpu_kernel_arg, dead_code, missing_docs)
)]

#[macro_use]
pub mod target;
pub mod column;
pub mod encoded;
pub mod gather;
pub mod group;
pub mod join;
pub mod map;
pub mod memory;
pub mod program;
pub mod ranges;
pub mod reduce;
pub mod select;
pub mod selftest;
pub mod sort;
pub mod text;

host_only! {
    /// Every entry of every kernel: the images must hold these, and the host can launch these.
    pub fn every_entry() -> impl Iterator<Item = &'static dyn target::AnyEntry> {
        let shapes = [
            encoded::TABLES,
            gather::TABLES,
            group::TABLES,
            join::TABLES,
            map::functions::TABLES,
            program::TABLES,
            ranges::TABLES,
            reduce::TABLES,
            select::TABLES,
            selftest::TABLES,
            sort::TABLES,
            text::TABLES,
        ];
        shapes.into_iter().flatten().flat_map(|table| (0..).map_while(|i| table.entry(i)))
    }
}
