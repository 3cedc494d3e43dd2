//! Map: a function of each row's value. One pass over the values makes the new values, the new validity, the
//! number of nulls, and the first row that does not fit.
//!
//! The one idea: the functions are in [`function`](super::function) and know no rows; this module feeds them
//! rows, whatever they do. A **tile** is four or eight accesses of each lane. An access is as many
//! neighbouring rows as make 16 bytes of the wider type (8 rows at most). A lane loads four accesses before
//! it converts the first. Each lane has a bit for each row that says whether the value fits, 32 bits at most;
//! groups of lanes transpose these bits to words, one a lane, where one `and` combines 32 rows with their
//! validity. Booleans are transposed in the same way when they are loaded or stored, and so is validity for
//! functions that read it.
//!
//! Values may be at any address: those of a slice need not start on a 16-byte boundary, and imported ones may
//! have no alignment at all. Then an access is assembled from the two aligned accesses that it overlaps.
//! Loads past the last value repeat the last aligned access that contains part of a value. Stores are always
//! whole: outputs begin on a 16-byte boundary and are writable up to one.
//!
//! Bytes moved: both types' widths for each row, and a bit for each validity. Instructions: about eight for
//! each access plus the conversion's own; where validity is wanted, two more for each row, and for each tile
//! two to four exchanges between lanes and some hundred instructions. That is why a tile may have eight
//! accesses.
//!
//! Offsets of another width are direct conversions between `i32` and `i64`, with one value more than rows:
//! the first offset that does not fit is an error whatever the caller's options.

use super::task::{HALF, MapTask, Shape};
use super::tile::{Source, each_tile, moved_up, part, place, store};

use super::function::words::{Parameter, WORDS, Words};
use super::function::{Native, Number, U256, ValueFunction};
use crate::memory::Bits;
use crate::target::Wave;

/// Declares the kernel of a family of functions. Its arguments are those of every map, then words of
/// parameters.
macro_rules! map_kernel {
    (family $($rest:tt)*) => { with_arguments! { map_kernel! { family $($rest)* } } };
    (
        { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)+ }
        family $family:literal;
        $(#[$doc:meta])*
        $args:ident ($($word:ident)*)
        $(#[$table_doc:meta])*
        $table:ident {
            $($name:ident <$($part:ident),+> [$($key:expr),+] = $function:ty,)+
        }
    ) => {
        kernel! {
            family $family;
            $(#[$doc])*
            $args {
                $($(#[$field_doc])* $field: $ty,)+
                $(
                    /// A word of the parameters.
                    $word: u64,
                )*
            }
            $(#[$table_doc])*
            $table {
                $($name<$($part),+> [$($key),+] =
                    |args, wave| $crate::map::kernel::map::<$function>(&args.task(), wave);
                    waves |args, width| $crate::map::kernel::waves::<$function>(args.len, args.tiles, width),)+
            }
        }

        impl $args {
            /// The arguments for a task, whose function must be in this family.
            pub fn of(task: &$crate::map::task::MapTask) -> $args {
                let [$($word,)* ..] = task.words;
                $args { $($field: task.$field,)+ $($word,)* }
            }

            #[inline(always)]
            fn task(&self) -> $crate::map::task::MapTask {
                // One by one: a loop over the words would put the array in memory on AMD.
                let mut words = [0; $crate::map::function::words::WORDS];
                let [$($word,)* ..] = &mut words;
                $(*$word = self.$word;)*
                $crate::map::task::MapTask { $($field: self.$field,)+ words }
            }
        }
    };
}

/// The number of waves that `len` rows take, at `tiles` tiles a wave.
pub fn waves<F: ValueFunction>(len: u64, tiles: u64, width: u32) -> u64 {
    len.div_ceil(u64::from(Shape::of::<F>().tile(width)) * tiles.max(1))
}

/// Applies a function to the rows of a wave.
#[inline(always)]
pub fn map<F>(task: &MapTask, wave: &mut Wave)
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    const fn is_bit<T: Native>() -> bool {
        matches!(T::NUMBER, Number::Bit)
    }
    const {
        let bits = is_bit::<F::From>() || is_bit::<F::To>();
        assert!(
            F::ALWAYS || !bits && !F::FILLS_NULLS,
            "there is no validity where bits are or nulls are filled"
        );
        assert!(
            !F::FILLS_NULLS || is_bit::<F::From>() == is_bit::<F::To>(),
            "not on the way in or out of bits"
        );
    }
    if const { is_bit::<F::From>() && is_bit::<F::To>() } {
        bits_to_bits::<F>(task, wave)
    } else if const { is_bit::<F::From>() } {
        bits_to_numbers::<F>(task, wave)
    } else if const { is_bit::<F::To>() } {
        numbers_to_bits::<F>(task, wave)
    } else {
        numbers_to_numbers::<F>(task, wave)
    }
}

#[inline(always)]
fn numbers_to_numbers<F>(task: &MapTask, wave: &mut Wave)
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    let shape = const { Shape::of::<F>() };
    let block = |words: &[u64; WORDS], block: U256, valid: u32| {
        let function = F::read(&mut Words::new(*words));
        let rows = const { Shape::of::<F>().rows };
        (0..rows).fold((U256::ZERO, 0), |(to, fits), j| {
            let (value, good) = function.call(part::<F::From>(block, j));
            let value =
                if F::FILLS_NULLS { either(valid >> j & 1 != 0, value, function.of_null()) } else { value };
            (place(to, value, j), fits | u32::from(good) << j)
        })
    };
    let kind = Kind { always: F::ALWAYS, fills_nulls: F::FILLS_NULLS };
    numbers(task, shape, kind, one_type_on_host!(ConvertBlock, block), wave)
}

/// Chooses between two values by their words, since compilers put a choice between values of 32 bytes into
/// memory.
#[inline(always)]
fn either<T: Native>(first: bool, one: T, other: T) -> T {
    let (one, other) = (one.to_bits(), other.to_bits());
    let low = if first { one.low } else { other.low };
    let high = if first { one.high } else { other.high };
    T::from_bits(U256 { low, high })
}

#[inline(always)]
fn bits_to_numbers<F>(task: &MapTask, wave: &mut Wave)
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    let shape = const { Shape::of::<F>() };
    let block = |words: &[u64; WORDS], bits: u32| {
        let function = F::read(&mut Words::new(*words));
        let rows = const { Shape::of::<F>().rows };
        (0..rows).fold(U256::ZERO, |to, j| {
            let bit = F::From::from_bits(U256::from_low((bits >> j & 1).into()));
            place(to, function.call(bit).0, j)
        })
    };
    from_bits(task, shape, one_type_on_host!(fn(&[u64; WORDS], u32) -> U256, block), wave)
}

#[inline(always)]
fn numbers_to_bits<F>(task: &MapTask, wave: &mut Wave)
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    let shape = const { Shape::of::<F>() };
    let block = |words: &[u64; WORDS], block: U256| {
        let function = F::read(&mut Words::new(*words));
        let rows = const { Shape::of::<F>().rows };
        (0..rows).fold(0, |bits, j| {
            let bit = function.call(part::<F::From>(block, j)).0;
            bits | ((bit.to_bits().low & 1) as u32) << j
        })
    };
    to_bits(task, shape, one_type_on_host!(fn(&[u64; WORDS], U256) -> u32, block), wave)
}

/// Applies a function of bits. Its results for a zero, a one and a null define it; on whole words, these are
/// three masks.
#[inline(always)]
fn bits_to_bits<F>(task: &MapTask, wave: &mut Wave)
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    let function = F::read(&mut Words::new(task.words));
    let mask = |value: F::To| if value.to_bits().low & 1 != 0 { !0 } else { 0 };
    let of = |bit: u128| mask(function.call(F::From::from_bits(U256::from_low(bit))).0);
    let null = if F::FILLS_NULLS { Some(mask(function.of_null())) } else { None };
    words(task, const { Shape::of::<F>() }, of(0), of(1), null, wave)
}

/// Converts a lane's values of an access. It takes the parameters, the values and a bit for each valid one;
/// it returns the new values and a bit for each that fits.
type ConvertBlock = fn(&[u64; WORDS], U256, u32) -> (U256, u32);

/// The properties of a function that matter to the handling of rows.
#[derive(Clone, Copy)]
struct Kind {
    /// Whether every value fits.
    always: bool,
    /// Whether nulls become values.
    fills_nulls: bool,
}

inlined_on_devices! {
    fn numbers(
        task: &MapTask,
        shape: Shape,
        Kind { always, fills_nulls }: Kind,
        convert: impl Fn(&[u64; WORDS], U256, u32) -> (U256, u32) + Copy,
        wave: &mut Wave,
    ) {
        let task = *task;
        let wanted = !always && !task.status.is_absent();
        let none = (wave.each(|_| 0u32), u64::MAX);
        let (nulls, first) = each_tile(&task, shape, wave, none, move |(nulls, first), tile, wave| {
            let live = wave.each(|l| tile.live(l.index()));
            let mut valid = live;
            if (wanted || fills_nulls) && !task.valid.is_absent() {
                valid = tile.bits(Bits::new(task.valid, task.valid_offset, task.len), wave);
            }
            let source = Source::new(&task, tile);
            let mut fits = wave.each(|_| 0u32);
            let mut half = 0;
            while half < tile.steps() {
                let mut blocks =
                    if source.whole { source.load(tile, half, wave) } else { source.load_apart(tile, half, wave) };
                wave.loads_done();
                let mut step = half;
                while step < half + HALF {
                    let block = blocks[0];
                    let mine = if fills_nulls { tile.spread(valid, step, wave) } else { live };
                    let both = wave.each(|l| convert(&task.words, block.at(l), mine.at(l)));
                    let (converted, good) = (wave.each(|l| both.at(l).0), wave.each(|l| both.at(l).1));
                    store(&task, tile, step, converted, wave);
                    if !always {
                        fits = tile.gather(fits, good, step, wave);
                    }
                    blocks = moved_up(blocks);
                    step += 1;
                }
                half += HALF;
            }
            if !wanted {
                return (nulls, first);
            }
            let fits = tile.gathered(fits, wave);
            let good = wave.each(|l| valid.at(l) & fits.at(l));
            if !task.out_valid.is_absent() {
                let out = task.out_valid.skip(tile.at / 32);
                wave.each(|l| {
                    if live.at(l) != 0 {
                        out.set(l, u64::from(tile.word(l.index())), good.at(l));
                    }
                });
            }
            let nulls = wave.each(|l| nulls.at(l) + (live.at(l) & !good.at(l)).count_ones());
            let bad = wave.each(|l| valid.at(l) & !fits.at(l));
            let found = wave.each(|l| bad.at(l) != 0);
            // Tiles come in order, so the first tile with a bad row has the wave's first bad row.
            if first == u64::MAX && wave.any(found) {
                let row = wave.each(|l| {
                    let row = tile.word(l.index()) * 32 + bad.at(l).trailing_zeros();
                    if bad.at(l) != 0 { row } else { u32::MAX }
                });
                return (nulls, tile.at + u64::from(wave.min(row)));
            }
            (nulls, first)
        });
        if wanted {
            let nulls = wave.sum(nulls);
            wave.once(|l| {
                if nulls != 0 {
                    task.status.add(l, 0, u64::from(nulls));
                }
                if first != u64::MAX {
                    task.status.min(l, 1, first);
                }
            });
        }
    }
}

inlined_on_devices! {
    fn from_bits(
        task: &MapTask,
        shape: Shape,
        convert: impl Fn(&[u64; WORDS], u32) -> U256 + Copy,
        wave: &mut Wave,
    ) {
        let task = *task;
        each_tile(&task, shape, wave, (), move |(), tile, wave| {
            let words = tile.bits(Bits::new(task.values, task.offset, task.len), wave);
            for step in 0..HALF {
                let mine = tile.spread(words, step, wave);
                let converted = wave.each(|l| convert(&task.words, mine.at(l)));
                store(&task, tile, step, converted, wave);
            }
        });
    }
}

inlined_on_devices! {
    fn to_bits(
        task: &MapTask,
        shape: Shape,
        convert: impl Fn(&[u64; WORDS], U256) -> u32 + Copy,
        wave: &mut Wave,
    ) {
        let task = *task;
        each_tile(&task, shape, wave, (), move |(), tile, wave| {
            let source = Source::new(&task, tile);
            let mut blocks = if source.whole { source.load(tile, 0, wave) } else { source.load_apart(tile, 0, wave) };
            let mut words = wave.each(|_| 0u32);
            for step in 0..HALF {
                let block = blocks[0];
                let bits = wave.each(|l| convert(&task.words, block.at(l)));
                words = tile.gather(words, bits, step, wave);
                blocks = moved_up(blocks);
            }
            let words = tile.gathered(words, wave);
            let out = task.out.cast().skip(tile.at / 32);
            wave.each(|l| {
                let live = tile.live(l.index());
                if live != 0 {
                    out.set(l, u64::from(tile.word(l.index())), words.at(l) & live);
                }
            });
        });
    }
}

inlined_on_devices! {
    /// Maps bits to bits. `zero`, `one` and, if nulls are filled, `null` are masks of the result for each
    /// input.
    fn words(task: &MapTask, shape: Shape, zero: u32, one: u32, null: Option<u32>, wave: &mut Wave) {
        let task = *task;
        each_tile(&task, shape, wave, (), move |(), tile, wave| {
            let values = tile.bits(Bits::new(task.values, task.offset, task.len), wave);
            let mut valid = wave.each(|_| !0u32);
            if null.is_some() && !task.valid.is_absent() {
                valid = tile.bits(Bits::new(task.valid, task.valid_offset, task.len), wave);
            }
            let out = task.out.cast().skip(tile.at / 32);
            wave.each(|l| {
                let (live, valid) = (tile.live(l.index()), valid.at(l));
                let made = zero & !values.at(l) | one & values.at(l);
                let made = made & valid | null.unwrap_or(0) & !valid;
                if live != 0 {
                    out.set(l, u64::from(tile.word(l.index())), made & live);
                }
            });
        });
    }
}
