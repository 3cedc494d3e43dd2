//! The host's side of a kernel: its arguments, its entries, and how to run one without a GPU.

use core::any::Any;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Range;

use super::{Address, BLOCK, Value, Wave};
use crate::memory::{In, Out};

/// A kernel's arguments, made by `kernel!`.
pub trait Args: Copy + Send + 'static {
    /// Name and kind of each, in order.
    const ARGUMENTS: &'static [Argument];
    /// The machine words to launch with, one for each argument, in order.
    fn pack(&self, words: &mut [u64]);
    /// Tells of the memory that the arguments give: first address, bytes, and whether it is written.
    fn extents(&self, tell: &mut dyn FnMut(u64, u64, bool));
    /// The arguments that these machine words are. Of each address, `extent` says how many bytes are behind it.
    fn unpack(words: &[u64], extent: &dyn Fn(u64) -> u64) -> Self;
    /// Makes every argument record its faults in `faults`.
    #[doc(hidden)]
    fn bind(&mut self, faults: &Faults);
}

/// What an entry takes in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument {
    /// The field's name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of argument. Each is one machine word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory that is read.
    In,
    /// Memory that is written.
    Out,
    /// A number.
    Word,
}

impl<T: Value> In<T> {
    /// `bytes` of memory at a device address, to be read. Nothing is read here: whoever launches vouches for it.
    pub const fn new(address: u64, bytes: u64) -> In<T> {
        In(Address::new(address, 0, bytes, false), PhantomData)
    }

    /// No memory: what an array without nulls has for validity.
    pub const fn absent() -> In<T> {
        In(Address::ABSENT, PhantomData)
    }
}

impl In<u32> {
    /// A bitmap whose first bit is `offset` bits into the `bytes` at `address`, whatever the address: the pointer moved
    /// down to a multiple of 16, and the offset from there.
    pub const fn bitmap(address: u64, bytes: u64, offset: u64) -> (In<u32>, u64) {
        let moved = address % 16;
        (In(Address::new(address - moved, moved, moved + bytes, true), PhantomData), offset + 8 * moved)
    }
}

impl<T: Value> Out<T> {
    /// `bytes` of memory at a device address, to be written. Nothing is written here: whoever launches vouches for it.
    pub const fn new(address: u64, bytes: u64) -> Out<T> {
        Out(Address::new(address, 0, bytes, false), PhantomData)
    }

    /// No memory: an output nobody wants.
    pub const fn absent() -> Out<T> {
        Out(Address::ABSENT, PhantomData)
    }
}

/// What can be a field of a kernel's arguments: for `kernel!`.
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
        // Ragged, as bitmaps may be.
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

/// Whose machines have an entry: their images hold it, the others' do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Makers {
    /// Every architecture that there are images for.
    All,
    /// NVIDIA's alone.
    Nvidia,
    /// AMD's alone.
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

/// One instantiation of a kernel: the symbol a GPU looks up, the body the host runs, and what both are called with.
pub struct Entry<A: 'static> {
    /// The symbol.
    pub name: &'static str,
    /// Which image it is in.
    pub family: &'static str,
    /// Which instantiation it is, e.g. the width in bytes. The kernel says.
    pub key: &'static [u32],
    /// Whose machines have it.
    pub makers: Makers,
    /// The kernel.
    pub body: fn(&A, &mut Wave),
    /// How many waves a launch with these arguments has, of this width: what a launch asks, and nothing else decides.
    pub waves: fn(&A, u32) -> u64,
}

/// The entry of a kernel's table with this key. `None` is "not supported".
pub fn find<A>(table: &'static [Entry<A>], key: &[u32]) -> Option<&'static Entry<A>> {
    table.iter().find(|entry| entry.key == key)
}

/// An [`Entry`] whose argument type is erased, so that a driver can hold it.
pub trait AnyEntry: Sync {
    /// The symbol.
    fn name(&self) -> &'static str;

    /// Which image it is in.
    fn family(&self) -> &'static str;

    /// Whose machines have it.
    fn makers(&self) -> Makers;

    /// What it takes.
    fn arguments(&self) -> &'static [Argument];

    /// Runs `waves` of the kernel, and the rest of the last block, as a GPU would. `args` is the argument struct the entry
    /// was declared with; anything else is a panic.
    ///
    /// An access outside an argument's extent does not happen: it reads zero or is dropped, and is put down in `faults`.
    ///
    /// # Safety
    ///
    /// - Every `In` and `Out` in `args`, and every table entry they hold, was made from memory that is initialised, alive,
    ///   exposed (its pointer was cast to an integer), and as long as was said.
    /// - Nobody else writes to it meanwhile, nor reads what an `Out` describes.
    unsafe fn emulate(&self, args: &dyn Any, width: u32, waves: Range<u64>, faults: &Faults);

    /// The same with the arguments as a GPU gets them: a machine word each, as many as [`arguments`](AnyEntry::arguments)
    /// says. How much memory is behind an address, `extent` knows.
    ///
    /// # Safety
    ///
    /// As for [`emulate`](AnyEntry::emulate), of the memory that `extent` tells of.
    unsafe fn emulate_words(
        &self,
        words: &[u64],
        extent: &dyn Fn(u64) -> u64,
        width: u32,
        waves: Range<u64>,
        faults: &Faults,
    );
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

    unsafe fn emulate(&self, args: &dyn Any, width: u32, waves: Range<u64>, faults: &Faults) {
        let args = args.downcast_ref::<A>().expect("the arguments this entry was declared with");
        // SAFETY: the caller's promise.
        unsafe { self.run(*args, width, waves, faults) };
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
        unsafe { self.run(A::unpack(words, extent), width, waves, faults) };
    }
}

impl<A: Args> Entry<A> {
    /// # Safety
    ///
    /// See [`AnyEntry::emulate`].
    unsafe fn run(&self, mut args: A, width: u32, waves: Range<u64>, faults: &Faults) {
        args.bind(faults);
        let end = waves.end.next_multiple_of(u64::from(BLOCK / width));
        for index in waves.start..end {
            (self.body)(&args, &mut Wave::new(width, index));
        }
    }
}

/// What an emulation refused to do.
#[derive(Default)]
pub struct Faults {
    first: Cell<Option<Fault>>,
}

impl Faults {
    /// None yet.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// The first one.
    pub fn first(&self) -> Option<Fault> {
        self.first.get()
    }

    pub(super) fn record(&self, fault: Fault) {
        if self.first.get().is_none() {
            self.first.set(Some(fault));
        }
    }
}

/// An access a kernel must not make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Through which argument (see [`AnyEntry::arguments`]). For a buffer out of a table: the table.
    pub argument: usize,
    /// To which element, in units of what was accessed, from the start of the buffer.
    pub index: u64,
    /// What for.
    pub access: Access,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What an access is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Read,
    /// A store or an atomic update.
    Write,
}

/// What can be wrong with an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Not inside the extent.
    Outside,
    /// Not at a multiple of its size.
    Misaligned,
}

/// The host's half of `kernel!`: see its documentation in `target/mod.rs`.
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
