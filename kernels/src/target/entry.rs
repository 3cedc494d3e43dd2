//! The host's side of a kernel: its arguments, its entries, and how to run one without a GPU.

use core::any::Any;
use core::marker::PhantomData;
use core::ops::Range;

use super::faults::Faults;
use super::order::Order;
use super::{Address, BLOCK, Value, Wave};
use crate::memory::{In, Out};

/// The arguments of a kernel; `kernel!` implements this.
pub trait Args: Copy + Send + 'static {
    /// The name and kind of each argument, in order.
    const ARGUMENTS: &'static [Argument];
    /// The machine words to launch with, one for each argument, in order.
    fn pack(&self, words: &mut [u64]);
    /// Calls `tell` for each argument that is memory: its first address, its bytes, and whether the kernel
    /// writes it.
    fn extents(&self, tell: &mut dyn FnMut(u64, u64, bool));
    /// Rebuilds the arguments from the machine words. `extent` gives the number of bytes from an address on.
    fn unpack(words: &[u64], extent: &dyn Fn(u64) -> u64) -> Self;
    /// Makes every argument record its faults in `faults`.
    #[doc(hidden)]
    fn bind(&mut self, faults: &Faults);
}

/// An argument that an entry takes: its name and kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument {
    /// The field's name in the argument struct.
    pub name: &'static str,
    /// Whether the argument is memory or a number.
    pub kind: Kind,
}

/// The kinds of argument. Each is one machine word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory that the kernel reads.
    In,
    /// Memory that the kernel writes.
    Out,
    /// A number, passed by value.
    Word,
}

impl<T: Value> In<T> {
    /// Describes `bytes` of memory at a device address, to be read. This function reads nothing; the caller
    /// that launches the kernel vouches for the memory.
    pub const fn new(address: u64, bytes: u64) -> In<T> {
        In(Address::new(address, 0, bytes, false), PhantomData)
    }

    /// No memory, for instance the validity of an array without nulls.
    pub const fn absent() -> In<T> {
        In(Address::ABSENT, PhantomData)
    }
}

impl In<u32> {
    /// Describes a bitmap whose first bit is `offset` bits into the `bytes` at `address`, which need not be
    /// aligned. Returns the pointer moved down to a multiple of 16, and the offset from there.
    pub const fn bitmap(address: u64, bytes: u64, offset: u64) -> (In<u32>, u64) {
        let moved = address % 16;
        (In(Address::new(address - moved, moved, moved + bytes, true), PhantomData), offset + 8 * moved)
    }
}

impl<T: Value> Out<T> {
    /// Describes `bytes` of memory at a device address, to be written. This function writes nothing; the
    /// caller that launches the kernel vouches for the memory.
    pub const fn new(address: u64, bytes: u64) -> Out<T> {
        Out(Address::new(address, 0, bytes, false), PhantomData)
    }

    /// No memory, for an output that the caller does not want.
    pub const fn absent() -> Out<T> {
        Out(Address::ABSENT, PhantomData)
    }
}

/// A type that can be a field of a kernel's arguments; for `kernel!`.
#[doc(hidden)]
pub trait Field: Copy + Send + 'static {
    const KIND: Kind;
    fn word(&self) -> u64;
    fn extent(&self) -> Option<(u64, u64)>;
    fn from_word(word: u64, extent: &dyn Fn(u64) -> u64) -> Self;
    fn bind(&mut self, place: usize, faults: &Faults);
}

impl<T: Value + Send> Field for In<T> {
    const KIND: Kind = Kind::In;
    fn word(&self) -> u64 {
        self.0.word()
    }
    fn extent(&self) -> Option<(u64, u64)> {
        Some(self.0.extent())
    }
    fn from_word(word: u64, extent: &dyn Fn(u64) -> u64) -> Self {
        // The extent may be ragged, since the memory may be a bitmap.
        In(Address::new(word, 0, if word == 0 { 0 } else { extent(word) }, true), PhantomData)
    }
    fn bind(&mut self, place: usize, faults: &Faults) {
        self.0.bind(place, faults)
    }
}

impl<T: Value + Send> Field for Out<T> {
    const KIND: Kind = Kind::Out;
    fn word(&self) -> u64 {
        self.0.word()
    }
    fn extent(&self) -> Option<(u64, u64)> {
        Some(self.0.extent())
    }
    fn from_word(word: u64, extent: &dyn Fn(u64) -> u64) -> Self {
        Out(Address::new(word, 0, if word == 0 { 0 } else { extent(word) }, false), PhantomData)
    }
    fn bind(&mut self, place: usize, faults: &Faults) {
        self.0.bind(place, faults)
    }
}

impl Field for u64 {
    const KIND: Kind = Kind::Word;
    fn word(&self) -> u64 {
        *self
    }
    fn extent(&self) -> Option<(u64, u64)> {
        None
    }
    fn from_word(word: u64, _: &dyn Fn(u64) -> u64) -> Self {
        word
    }
    fn bind(&mut self, _: usize, _: &Faults) {}
}

/// The makers of GPUs that have an entry: the images for other makers' GPUs lack it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Makers {
    /// Every architecture that has images.
    All,
    /// NVIDIA's GPUs, and no others.
    Nvidia,
    /// AMD's GPUs, and no others.
    Amd,
}

impl Makers {
    /// Whether the images for an architecture (`sm_75`, `gfx90a`, …) have the entry.
    pub fn include(self, architecture: &str) -> bool {
        match self {
            Makers::All => true,
            Makers::Nvidia => architecture.starts_with("sm_"),
            Makers::Amd => architecture.starts_with("gfx"),
        }
    }
}

/// One instantiation of a kernel: the symbol a GPU looks up, the body the host runs, and the arguments both
/// take.
pub struct Entry<A: 'static> {
    /// The symbol that a GPU driver looks up.
    pub name: &'static str,
    /// The name of the image that holds it.
    pub family: &'static str,
    /// The instantiation, e.g. the width in bytes. Each kernel defines its own keys.
    pub key: &'static [u32],
    /// The makers whose GPUs have it.
    pub makers: Makers,
    /// The kernel's body, as the host runs it.
    pub body: fn(&A, &mut Wave),
    /// The number of waves in a launch with these arguments, on waves of this width. Launches use this number
    /// and no other.
    pub waves: fn(&A, u32) -> u64,
}

/// Finds the entry with this key in a kernel's table. `None` means "not supported".
pub fn find<A>(table: &'static [Entry<A>], key: &[u32]) -> Option<&'static Entry<A>> {
    table.iter().find(|entry| entry.key == key)
}

/// An [`Entry`] whose argument type is erased, so that a driver can hold it.
pub trait AnyEntry: Sync {
    /// The symbol that a GPU driver looks up.
    fn name(&self) -> &'static str;

    /// The name of the image that holds it.
    fn family(&self) -> &'static str;

    /// The makers whose GPUs have it.
    fn makers(&self) -> Makers;

    /// The arguments it takes, in order.
    fn arguments(&self) -> &'static [Argument];

    /// Runs `waves` of the kernel, and the rest of the last block, as a GPU would. `args` is the argument
    /// struct of the entry's declaration; any other type is a panic. Waves and lanes run in an order that is
    /// the same for the same entry and number of waves.
    ///
    /// An access outside an argument's extent does not happen: a read gives zero, a write is dropped, and
    /// `faults` records it.
    ///
    /// # Safety
    ///
    /// - Every `In` and `Out` in `args`, and every table entry they hold, was made from memory that is
    ///   initialised, alive, exposed (its pointer was cast to an integer), and as long as the call that made
    ///   it said.
    /// - Nothing else writes to that memory meanwhile, or reads memory that an `Out` describes.
    unsafe fn emulate(&self, args: &dyn Any, width: u32, waves: Range<u64>, faults: &Faults) {
        // SAFETY: the caller's promise.
        unsafe { self.emulate_in_order(args, width, waves, 0, faults) }
    }

    /// Runs the kernel like [`emulate`](AnyEntry::emulate), with waves and lanes in the random order that a
    /// seed gives. A GPU promises no order, so a result that depends on the seed is a bug.
    ///
    /// # Safety
    ///
    /// The promises of [`emulate`](AnyEntry::emulate).
    unsafe fn emulate_in_order(
        &self,
        args: &dyn Any,
        width: u32,
        waves: Range<u64>,
        seed: u64,
        faults: &Faults,
    );

    /// Runs the kernel like [`emulate`](AnyEntry::emulate), with the arguments as a GPU gets them: a machine
    /// word each, as many as [`arguments`](AnyEntry::arguments) lists. `extent` gives the number of bytes
    /// from an address on.
    ///
    /// # Safety
    ///
    /// Those of [`emulate`](AnyEntry::emulate), for the memory that `extent` describes.
    unsafe fn emulate_words(
        &self,
        words: &[u64],
        extent: &dyn Fn(u64) -> u64,
        width: u32,
        waves: Range<u64>,
        faults: &Faults,
    );
}

/// A kernel's table of entries, whose argument type is erased.
pub trait Table: Sync {
    /// Entry `i`, if the table has as many.
    fn entry(&self, i: usize) -> Option<&'static dyn AnyEntry>;
}

impl<A: Args> Table for &'static [Entry<A>] {
    fn entry(&self, i: usize) -> Option<&'static dyn AnyEntry> {
        self.get(i).map(|entry| entry as &dyn AnyEntry)
    }
}

impl<A: Args> AnyEntry for Entry<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> &'static str {
        self.family
    }

    fn makers(&self) -> Makers {
        self.makers
    }

    fn arguments(&self) -> &'static [Argument] {
        A::ARGUMENTS
    }

    unsafe fn emulate_in_order(
        &self,
        args: &dyn Any,
        width: u32,
        waves: Range<u64>,
        seed: u64,
        faults: &Faults,
    ) {
        let args = args.downcast_ref::<A>().expect("the arguments this entry was declared with");
        // SAFETY: the caller's promise.
        unsafe { self.run(*args, width, waves, seed, faults) };
    }

    unsafe fn emulate_words(
        &self,
        words: &[u64],
        extent: &dyn Fn(u64) -> u64,
        width: u32,
        waves: Range<u64>,
        faults: &Faults,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.run(A::unpack(words, extent), width, waves, 0, faults) };
    }
}

impl<A: Args> Entry<A> {
    /// # Safety
    ///
    /// Those of [`AnyEntry::emulate`], for the memory that `args` describes.
    unsafe fn run(&self, mut args: A, width: u32, waves: Range<u64>, seed: u64, faults: &Faults) {
        args.bind(faults);
        let end = waves.end.next_multiple_of(u64::from(BLOCK / width));
        let mut order = Order::of_launch(seed, self.name, end);
        let lanes = order.draw();
        for index in order.walk(end.saturating_sub(waves.start)).map(|i| waves.start + i) {
            (self.body)(&args, &mut Wave::in_order(width, index, Order::new(lanes, index)));
        }
    }
}

/// The host's half of `kernel!`; `target/mod.rs` documents the macro.
macro_rules! kernel {
    (@makers) => { $crate::target::Makers::All };
    (@makers nvidia) => { $crate::target::Makers::Nvidia };
    (@makers amd) => { $crate::target::Makers::Amd };
    (
        family $family:literal $(, $tuning:ident $value:literal $(for $($tuned:ident)+)?)*;
        $(#[$doc:meta])* $args:ident $fields:tt
        waves $waves:expr;
        $(#[$table_doc:meta])* $table:ident {
            $($name:ident $(<$($part:ident),+>)? $([$($key:expr),+])? $(on $maker:ident)? = $body:expr,)+
        }
    ) => {
        kernel! {
            family $family;
            $(#[$doc])* $args $fields
            $(#[$table_doc])* $table {
                $($name $(<$($part),+>)? $([$($key),+])? $(on $maker)? = $body; waves $waves,)+
            }
        }
    };
    (
        family $family:literal;
        $(#[$doc:meta])* $args:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)+ }
        $(#[$table_doc:meta])* $table:ident {
            $($name:ident $(<$($part:ident),+>)? $([$($key:expr),+])? $(on $maker:ident)? = $body:expr; waves $waves:expr,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $args { $($(#[$field_doc])* pub $field: $ty,)+ }

        impl $crate::target::Args for $args {
            const ARGUMENTS: &'static [$crate::target::Argument] = &[$($crate::target::Argument {
                name: stringify!($field),
                kind: <$ty as $crate::target::Field>::KIND,
            },)+];

            fn pack(&self, words: &mut [u64]) {
                let packed = [$($crate::target::Field::word(&self.$field),)+];
                words.copy_from_slice(&packed);
            }

            fn extents(&self, tell: &mut dyn FnMut(u64, u64, bool)) {
                $(
                    if let Some((start, bytes)) = $crate::target::Field::extent(&self.$field) {
                        tell(start, bytes, <$ty as $crate::target::Field>::KIND == $crate::target::Kind::Out);
                    }
                )+
            }

            fn unpack(words: &[u64], extent: &dyn Fn(u64) -> u64) -> Self {
                let [$($field),+] = *words else {
                    panic!("{} arguments for {}", words.len(), stringify!($args))
                };
                $args { $($field: $crate::target::Field::from_word($field, extent),)+ }
            }

            fn bind(&mut self, faults: &$crate::target::Faults) {
                let mut place = 0;
                $(
                    $crate::target::Field::bind(&mut self.$field, place, faults);
                    place += 1;
                )+
                let _ = place;
            }
        }

        $(#[$table_doc])*
        pub static $table: &[$crate::target::Entry<$args>] = &[$($crate::target::Entry {
            name: concat!(stringify!($name) $($(, "_", stringify!($part))+)?),
            family: $family,
            key: &[$($($key),+)?],
            makers: kernel!(@makers $($maker)?),
            body: $body,
            waves: $waves,
        },)+];
    };
}
