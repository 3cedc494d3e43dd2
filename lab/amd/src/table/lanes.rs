//! Makes vector operations from plain functions on one lane's values: each is wrapped in a loop over all
//! lanes, which the compiler optimises. Values of every type travel as 64 bits for each lane.

use super::row::{Action, Body, Kind, Output, Packed, Sources, Vector, WIDE};

/// A type of value in a lane.
pub(crate) trait Lane: Copy {
    const KIND: Kind;
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! lane_of_integers {
    ($($t:ty, $unsigned:ty, $kind:ident;)*) => { $(impl Lane for $t {
        const KIND: Kind = Kind::$kind;
        #[inline(always)]
        fn of(bits: u64) -> $t {
            bits as $t
        }
        #[inline(always)]
        fn bits(self) -> u64 {
            u64::from(self as $unsigned)
        }
    })* };
}
lane_of_integers! { u16, u16, B16; i16, u16, B16; u32, u32, B32; i32, u32, B32; u64, u64, B64; i64, u64, B64; }

impl Lane for f32 {
    const KIND: Kind = Kind::F32;
    #[inline(always)]
    fn of(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Lane for f64 {
    const KIND: Kind = Kind::F64;
    #[inline(always)]
    fn of(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Runs a closure for each lane of a wave; the lane count is a constant for the compiler.
#[inline(always)]
fn each(lanes: usize, mut run: impl FnMut(usize)) {
    match lanes {
        32 => (0..32).for_each(&mut run),
        _ => (0..WIDE).for_each(&mut run),
    }
}

#[inline(always)]
fn operands<T: Lane, const K: usize>(from: &Sources, lane: usize) -> [T; K] {
    std::array::from_fn(|k| T::of(from[k][lane]))
}

fn vector(to: Output, from: Vec<Kind>, run: Body) -> Vector {
    Vector { to, from, run, clamped: None, packed: None }
}

fn all<T: Lane, R: Lane, const K: usize>(run: impl Fn([T; K]) -> R + Send + Sync + 'static) -> Body {
    Box::new(move |from, lanes, to| {
        each(lanes, |lane| to[lane] = run(operands(from, lane)).bits());
        0
    })
}

/// An operation on operands of one type.
pub(super) fn plain<T: Lane, R: Lane, const K: usize>(
    run: impl Fn([T; K]) -> R + Send + Sync + 'static,
) -> Action {
    Action::Vector(vector(Output::Lanes(R::KIND), vec![T::KIND; K], all(run)))
}

/// Like [`plain`], with a variant that saturates instead of wrapping.
pub(super) fn clampable<T: Lane, const K: usize>(
    run: impl Fn([T; K]) -> T + Send + Sync + 'static,
    clamped: impl Fn([T; K]) -> T + Send + Sync + 'static,
) -> Action {
    let made = vector(Output::Lanes(T::KIND), vec![T::KIND; K], all(run));
    Action::Vector(Vector { clamped: Some(all(clamped)), ..made })
}

/// An operation that also reads its result's register, as the third operand.
pub(super) fn onto<T: Lane>(run: impl Fn([T; 3]) -> T + Send + Sync + 'static) -> Action {
    Action::Vector(vector(Output::Lanes(T::KIND), vec![T::KIND, T::KIND, Kind::Result], all(run)))
}

/// An operation on operands of several types.
pub(super) fn mixed<const K: usize>(
    to: Kind,
    from: [Kind; K],
    run: impl Fn([u64; K]) -> u64 + Send + Sync + 'static,
) -> Action {
    Action::Vector(vector(Output::Lanes(to), from.to_vec(), all(run)))
}

/// An operation that returns a value and a bit.
pub(super) fn carries<const K: usize>(
    to: Kind,
    from: [Kind; K],
    run: impl Fn([u64; K]) -> (u64, bool) + Send + Sync + 'static,
) -> Action {
    let body: Body = Box::new(move |from, lanes, to| {
        let mut bits = 0;
        each(lanes, |lane| {
            let (value, bit) = run(operands(from, lane));
            to[lane] = value;
            bits |= u64::from(bit) << lane;
        });
        bits
    });
    Action::Vector(vector(Output::Both(to), from.to_vec(), body))
}

fn compared<T: Lane>(to: Output, run: impl Fn(T, T) -> bool + Send + Sync + 'static) -> Action {
    let body: Body = Box::new(move |from, lanes, _| {
        let mut bits = 0;
        each(lanes, |lane| {
            let [a, b] = operands(from, lane);
            bits |= u64::from(run(a, b)) << lane;
        });
        bits
    });
    Action::Vector(vector(to, vec![T::KIND; 2], body))
}

/// A comparison that returns one bit for each lane.
pub(super) fn compare<T: Lane>(run: impl Fn(T, T) -> bool + Send + Sync + 'static) -> Action {
    compared(Output::Mask, run)
}

/// A comparison that sets `exec`, the lanes that stay active.
pub(super) fn compare_exec<T: Lane>(run: impl Fn(T, T) -> bool + Send + Sync + 'static) -> Action {
    compared(Output::Exec, run)
}

/// An operation with two results at once, of `half` bits each.
pub(super) fn packed(kind: Kind, half: u32, moves: bool, run: fn(u64, u64) -> u64) -> Action {
    let made = vector(Output::Lanes(kind), vec![kind; 2], Box::new(|_, _, _| 0));
    Action::Vector(Vector { packed: Some(Packed { run, half, moves }), ..made })
}
