//! The instructions that touch neither memory nor other lanes: each mnemonic becomes a closure.

use half::f16;

use crate::module::{Function, Value};

/// A PTX type, as a mnemonic's suffix names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Predicate,
    Bits(u32),
    Unsigned(u32),
    Signed(u32),
    Float(u32),
}

impl Type {
    pub fn parse(suffix: &str) -> Option<Type> {
        use Type::*;
        Some(match suffix {
            "pred" => Predicate,
            "b8" => Bits(8),
            "b16" => Bits(16),
            "b32" => Bits(32),
            "b64" => Bits(64),
            "u8" => Unsigned(8),
            "u16" => Unsigned(16),
            "u32" => Unsigned(32),
            "u64" => Unsigned(64),
            "s8" => Signed(8),
            "s16" => Signed(16),
            "s32" => Signed(32),
            "s64" => Signed(64),
            "f16" => Float(16),
            "f32" => Float(32),
            "f64" => Float(64),
            _ => return None,
        })
    }

    pub fn bits(self) -> u32 {
        match self {
            Type::Predicate => 1,
            Type::Bits(n) | Type::Unsigned(n) | Type::Signed(n) | Type::Float(n) => n,
        }
    }
}

pub(crate) fn low(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

/// The number in a register, in a type that holds all integer types.
fn integer(value: u64, ty: Type) -> i128 {
    match ty {
        Type::Signed(bits) => i128::from(signed(value, bits)),
        ty => i128::from(low(value, ty.bits())),
    }
}

fn float(value: u64, bits: u32) -> f64 {
    match bits {
        16 => f16::from_bits(value as u16).to_f64(),
        32 => f64::from(f32::from_bits(value as u32)),
        _ => f64::from_bits(value),
    }
}

/// Rounds to nearest even. Exact operations on f32 may go through f64, and on f16 through both, without a
/// second rounding.
fn unfloat(value: f64, bits: u32) -> u64 {
    match bits {
        16 => u64::from(f16::from_f64(value).to_bits()),
        32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// One of the four operations, rounded once: by f64's own, by f32's own, or for f16 through f32. Its 24 bits
/// are more than twice 11 plus 2, so the second rounding changes nothing.
fn float_op(bits: u32, wide: fn(f64, f64) -> f64, narrow: fn(f32, f32) -> f32) -> Function {
    match bits {
        64 => Box::new(move |s| wide(f64::from_bits(s[0]), f64::from_bits(s[1])).to_bits()),
        32 => Box::new(move |s| {
            u64::from(narrow(f32::from_bits(s[0] as u32), f32::from_bits(s[1] as u32)).to_bits())
        }),
        _ => Box::new(move |s| {
            let of = |x| f16::from_bits(x as u16).to_f32();
            u64::from(f16::from_f32(narrow(of(s[0]), of(s[1]))).to_bits())
        }),
    }
}

fn compare(how: &str, ty: Type) -> Option<Box<dyn Fn(u64, u64) -> bool + Send + Sync>> {
    if let Type::Float(bits) = ty {
        let (test, unordered): (fn(&f64, &f64) -> bool, bool) = match how {
            "eq" | "equ" => (f64::eq, how == "equ"),
            "ne" | "neu" => (|a, b| a.partial_cmp(b).is_some_and(|order| order.is_ne()), how == "neu"),
            "lt" | "ltu" => (f64::lt, how == "ltu"),
            "le" | "leu" => (f64::le, how == "leu"),
            "gt" | "gtu" => (f64::gt, how == "gtu"),
            "ge" | "geu" => (f64::ge, how == "geu"),
            "num" => (|a, b| !a.is_nan() && !b.is_nan(), false),
            "nan" => (|_, _| false, true),
            _ => return None,
        };
        return Some(Box::new(move |a, b| {
            let (a, b) = (float(a, bits), float(b, bits));
            test(&a, &b) || (unordered && (a.is_nan() || b.is_nan()))
        }));
    }
    let test: fn(&i128, &i128) -> bool = match how {
        "eq" => i128::eq,
        "ne" => i128::ne,
        "lt" | "lo" => i128::lt,
        "le" | "ls" => i128::le,
        "gt" | "hi" => i128::gt,
        "ge" | "hs" => i128::ge,
        _ => return None,
    };
    Some(Box::new(move |a, b| test(&integer(a, ty), &integer(b, ty))))
}

fn shift(left: bool, ty: Type) -> Function {
    let bits = ty.bits();
    let by = move |s: &Value| low(s[1], 32);
    match (left, ty) {
        (true, _) => Box::new(move |s| if by(s) >= u64::from(bits) { 0 } else { low(s[0] << by(s), bits) }),
        (false, Type::Signed(_)) => {
            Box::new(move |s| low((signed(s[0], bits) >> by(s).min(63)) as u64, bits))
        }
        (false, _) => Box::new(move |s| if by(s) >= u64::from(bits) { 0 } else { low(s[0], bits) >> by(s) }),
    }
}

fn funnel(left: bool, wrap: bool) -> Function {
    Box::new(move |s| {
        let both = low(s[1], 32) << 32 | low(s[0], 32);
        let by = if wrap { s[2] as u32 & 31 } else { (s[2] as u32).min(32) };
        low(if left { ((both as u128) << by >> 32) as u64 } else { both >> by }, 32)
    })
}

fn bit_field_extract(ty: Type) -> Function {
    let bits = ty.bits();
    Box::new(move |s| {
        let (start, len) = (s[1] as u32 & 255, s[2] as u32 & 255);
        let top = (start + len).saturating_sub(1).min(bits - 1);
        let sign = matches!(ty, Type::Signed(_)) && len > 0 && s[0] >> top & 1 != 0;
        (0..bits).fold(0, |field, k| {
            let inside = k < len && start + k < bits;
            field | u64::from(if inside { s[0] >> (start + k) & 1 != 0 } else { sign }) << k
        })
    })
}

fn bit_field_insert(bits: u32) -> Function {
    Box::new(move |s| {
        let (start, len) = (s[2] as u32 & 255, s[3] as u32 & 255);
        (0..len)
            .filter(|k| start + k < bits)
            .fold(low(s[1], bits), |word, k| word & !(1 << (start + k)) | (s[0] >> k & 1) << (start + k))
    })
}

fn permute() -> Function {
    Box::new(|s| {
        let bytes = low(s[1], 32) << 32 | low(s[0], 32);
        (0..4).fold(0, |word, k| {
            let selector = s[2] >> (4 * k) & 15;
            let byte = bytes >> (8 * (selector & 7)) & 255;
            let byte = if selector & 8 == 0 { byte } else { 255 * (byte >> 7) };
            word | byte << (8 * k)
        })
    })
}

fn round(how: &[&str]) -> fn(f64) -> f64 {
    match () {
        _ if how.contains(&"rni") => f64::round_ties_even,
        _ if how.contains(&"rmi") => f64::floor,
        _ if how.contains(&"rpi") => f64::ceil,
        _ if how.contains(&"rzi") => f64::trunc,
        _ => |x| x,
    }
}

fn convert(to: Type, from: Type, how: &[&str]) -> Option<Function> {
    let bits = to.bits();
    let saturate = how.contains(&"sat");
    let (least, most) = match to {
        Type::Signed(n) => (-(1i128 << (n - 1)), (1i128 << (n - 1)) - 1),
        ty => (0, (1i128 << ty.bits()) - 1),
    };
    // A register wider than a signed result holds it sign-extended.
    let kept = move |value: i64| match to {
        Type::Signed(n) => signed(value as u64, n) as u64,
        _ => low(value as u64, bits),
    };
    Some(match (to, from) {
        (Type::Float(_), _) if saturate => return None,
        (Type::Float(_), Type::Float(n)) => {
            // f64 to f16 rounds once: f16::from_f64 works on the f64 itself.
            let round = round(how);
            Box::new(move |s| unfloat(round(float(s[0], n)), bits))
        }
        (Type::Float(64), ty) => Box::new(move |s| (integer(s[0], ty) as f64).to_bits()),
        (Type::Float(32), ty) => Box::new(move |s| u64::from((integer(s[0], ty) as f32).to_bits())),
        // An f64 holds integers up to 2^53 exactly. f16 is infinite far below that, and larger integers stay
        // larger.
        (Type::Float(_), ty) => Box::new(move |s| unfloat(integer(s[0], ty) as f64, bits)),
        (_, Type::Float(n)) => {
            // NaN becomes 0 if neither side has 64 bits, else a value with only the highest bit set.
            let of_nan = if n < 64 && bits < 64 { 0 } else { 1 << (bits - 1) };
            let round = round(how);
            Box::new(move |s| {
                let from = float(s[0], n);
                let value = if from.is_nan() { of_nan } else { (round(from) as i128).clamp(least, most) };
                kept(value as i64)
            })
        }
        (_, ty) if saturate => Box::new(move |s| kept(integer(s[0], ty).clamp(least, most) as i64)),
        (_, ty) => Box::new(move |s| kept(integer(s[0], ty) as i64)),
    })
}

/// The closure for a mnemonic, and the number of its sources; `None` if it is not in the subset.
pub(crate) fn function(mnemonic: &str) -> Option<(Function, usize)> {
    let mut words = mnemonic.split('.');
    let name = words.next()?;
    let words: Vec<&str> = words.collect();
    let types: Vec<Type> = words.iter().filter_map(|word| Type::parse(word)).collect();
    let has = |word: &str| words.contains(&word);
    let (ty, last) = (*types.first()?, *types.last()?);
    let bits = ty.bits();
    let is_float = matches!(ty, Type::Float(_));
    // The modifiers allowed for this operation. Any other would change its meaning.
    let known: &[&str] = match name {
        "add" | "sub" | "mul" | "div" | "rcp" | "sqrt" | "fma" if is_float => &["rn"],
        "mul" | "mad" => &["lo", "hi", "wide"],
        "shf" => &["l", "r", "wrap", "clamp"],
        "prmt" => &["f4e"],
        "cvta" => &["to", "global"],
        "cvt" => &["rn", "rni", "rmi", "rpi", "rzi", "sat"],
        _ => &[],
    };
    if name != "setp" && words.iter().any(|word| Type::parse(word).is_none() && !known.contains(word)) {
        return None;
    }
    let product = move |s: &Value| integer(s[0], ty).wrapping_mul(integer(s[1], ty));
    Some(match name {
        "add" if is_float => (float_op(bits, |a, b| a + b, |a, b| a + b), 2),
        "sub" if is_float => (float_op(bits, |a, b| a - b, |a, b| a - b), 2),
        "mul" if is_float => (float_op(bits, |a, b| a * b, |a, b| a * b), 2),
        "div" if is_float && has("rn") => (float_op(bits, |a, b| a / b, |a, b| a / b), 2),
        "rcp" if is_float && has("rn") => (float_op(bits, |a, _| 1.0 / a, |a, _| 1.0 / a), 1),
        "sqrt" if is_float && has("rn") => (float_op(bits, |a, _| a.sqrt(), |a, _| a.sqrt()), 1),
        // Rust's functions are IEEE's minNum and maxNum except for the sign of zero, which PTX orders.
        "min" if is_float => (float_op(bits, least, |a, b| least(a.into(), b.into()) as f32), 2),
        "max" if is_float => {
            (float_op(bits, |a, b| -least(-a, -b), |a, b| -least(-f64::from(a), -f64::from(b)) as f32), 2)
        }
        "fma" => match bits {
            64 => (
                Box::new(|s| {
                    f64::from_bits(s[0]).mul_add(f64::from_bits(s[1]), f64::from_bits(s[2])).to_bits()
                }),
                3,
            ),
            32 => {
                let of = |x: u64| f32::from_bits(x as u32);
                (Box::new(move |s| u64::from(of(s[0]).mul_add(of(s[1]), of(s[2])).to_bits())), 3)
            }
            _ => return None,
        },
        "abs" if is_float => (Box::new(move |s| low(s[0], bits - 1)), 1),
        "neg" if is_float => (Box::new(move |s| low(s[0] ^ 1 << (bits - 1), bits)), 1),
        "copysign" => (Box::new(move |s| low(s[1], bits - 1) | (s[0] & 1 << (bits - 1))), 2),
        "add" => (Box::new(move |s| low(s[0].wrapping_add(s[1]), bits)), 2),
        "sub" => (Box::new(move |s| low(s[0].wrapping_sub(s[1]), bits)), 2),
        "mul" if has("wide") => (Box::new(move |s| low(product(s) as u64, 2 * bits)), 2),
        "mul" if has("hi") => (Box::new(move |s| low((product(s) >> bits) as u64, bits)), 2),
        "mul" if has("lo") => (Box::new(move |s| low(s[0].wrapping_mul(s[1]), bits)), 2),
        "mad" if has("wide") => (Box::new(move |s| low((product(s) as u64).wrapping_add(s[2]), 2 * bits)), 3),
        "mad" if has("hi") => {
            (Box::new(move |s| low(((product(s) >> bits) as u64).wrapping_add(s[2]), bits)), 3)
        }
        "mad" if has("lo") => (Box::new(move |s| low(s[0].wrapping_mul(s[1]).wrapping_add(s[2]), bits)), 3),
        // On hardware, division by zero gives all ones, and the dividend as remainder.
        "div" => (
            Box::new(move |s| {
                let divisor = integer(s[1], ty);
                low(if divisor == 0 { !0 } else { (integer(s[0], ty) / divisor) as u64 }, bits)
            }),
            2,
        ),
        "rem" => (
            Box::new(move |s| {
                let divisor = integer(s[1], ty);
                low(if divisor == 0 { s[0] } else { (integer(s[0], ty) % divisor) as u64 }, bits)
            }),
            2,
        ),
        "abs" => (Box::new(move |s| low(signed(s[0], bits).wrapping_abs() as u64, bits)), 1),
        "neg" => (Box::new(move |s| low(s[0].wrapping_neg(), bits)), 1),
        "min" => (Box::new(move |s| low(integer(s[0], ty).min(integer(s[1], ty)) as u64, bits)), 2),
        "max" => (Box::new(move |s| low(integer(s[0], ty).max(integer(s[1], ty)) as u64, bits)), 2),
        "and" => (Box::new(move |s| low(s[0] & s[1], bits)), 2),
        "or" => (Box::new(move |s| low(s[0] | s[1], bits)), 2),
        "xor" => (Box::new(move |s| low(s[0] ^ s[1], bits)), 2),
        "not" => (Box::new(move |s| low(!s[0], bits)), 1),
        "shl" => (shift(true, ty), 2),
        "shr" => (shift(false, ty), 2),
        "shf" if has("l") || has("r") => (funnel(has("l"), has("wrap")), 3),
        "bfe" => (bit_field_extract(ty), 3),
        "bfi" => (bit_field_insert(bits), 4),
        "brev" => (Box::new(move |s| low(s[0], bits).reverse_bits() >> (64 - bits)), 1),
        "clz" => (Box::new(move |s| u64::from(low(s[0], bits).leading_zeros() - (64 - bits))), 1),
        "popc" => (Box::new(move |s| u64::from(low(s[0], bits).count_ones())), 1),
        // Four bytes forward, starting at the selected byte.
        "prmt" if has("f4e") => {
            (Box::new(|s| low((low(s[1], 32) << 32 | low(s[0], 32)) >> (8 * (s[2] & 3)), 32)), 3)
        }
        "prmt" => (permute(), 3),
        "mov" | "cvta" => (Box::new(move |s| low(s[0], bits)), 1),
        "selp" => (Box::new(move |s| low(if s[2] & 1 != 0 { s[0] } else { s[1] }, bits)), 3),
        "setp" => {
            let test = compare(words.first()?, ty)?;
            let join: Option<fn(bool, bool) -> bool> = match words.get(1).filter(|_| words.len() == 3) {
                None => None,
                Some(&"and") => Some(|a, b| a & b),
                Some(&"or") => Some(|a, b| a | b),
                Some(&"xor") => Some(|a, b| a ^ b),
                Some(_) => return None,
            };
            match join {
                None if words.len() == 2 => (Box::new(move |s| u64::from(test(s[0], s[1]))), 2),
                None => return None,
                Some(join) => (Box::new(move |s| u64::from(join(test(s[0], s[1]), s[2] & 1 != 0))), 3),
            }
        }
        "cvt" if types.len() == 2 => (convert(ty, last, &words)?, 1),
        _ => return None,
    })
}

/// The smaller number: a number before NaN, -0 before 0.
fn least(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

/// Computes an atomic's new value from the old one (first) and the operands.
pub(crate) fn atomic(how: &str, ty: Type) -> Option<Function> {
    let bits = ty.bits();
    Some(match how {
        "add" if !matches!(ty, Type::Float(_)) => Box::new(move |s| low(s[0].wrapping_add(s[1]), bits)),
        "and" => Box::new(move |s| low(s[0] & s[1], bits)),
        "or" => Box::new(move |s| low(s[0] | s[1], bits)),
        "xor" => Box::new(move |s| low(s[0] ^ s[1], bits)),
        "exch" => Box::new(move |s| low(s[1], bits)),
        "cas" => Box::new(move |s| if s[0] == low(s[1], bits) { low(s[2], bits) } else { s[0] }),
        "min" => Box::new(move |s| low(integer(s[0], ty).min(integer(s[1], ty)) as u64, bits)),
        "max" => Box::new(move |s| low(integer(s[0], ty).max(integer(s[1], ty)) as u64, bits)),
        _ => return None,
    })
}
