//! Decimal arithmetic as in arrow-arith. Operands are brought to a common scale, every step is checked in the
//! width of the type, and the precision is that of the largest result, limited to the type's maximum.

use arrow_schema::DataType;

use super::binder::{Binder, Typed};
use super::plan::{Bad, Op};
use super::print::short;
use super::range::limits;
use super::{Arithmetic, Expr, Options};
use crate::{Error, Result};

/// The parameters of a decimal type.
#[derive(Clone, Copy)]
struct Decimal {
    make: fn(u8, i8) -> DataType,
    max_precision: u8,
    max_scale: i8,
    precision: u8,
    scale: i8,
}

fn decimal(data_type: &DataType) -> Option<Decimal> {
    let of = |make, max_precision: u8, precision, scale| {
        Some(Decimal { make, max_precision, max_scale: max_precision as i8, precision, scale })
    };
    match *data_type {
        DataType::Decimal32(precision, scale) => {
            of(DataType::Decimal32 as fn(u8, i8) -> DataType, 9, precision, scale)
        }
        DataType::Decimal64(precision, scale) => of(DataType::Decimal64, 18, precision, scale),
        DataType::Decimal128(precision, scale) => of(DataType::Decimal128, 38, precision, scale),
        _ => None,
    }
}

/// Whether a type is a decimal.
pub(super) fn is_decimal(data_type: &DataType) -> bool {
    decimal(data_type).is_some()
}

/// The number of digits after the decimal point.
pub(super) fn scale(data_type: &DataType) -> i8 {
    decimal(data_type).map_or(0, |decimal| decimal.scale)
}

/// Brings two decimals of one width to the larger of their scales. A value that no longer fits is treated as
/// in arithmetic.
pub(super) fn alike(binder: &mut Binder<'_>, a: &Typed, b: &Typed, expr: &Expr) -> Result<(Typed, Typed)> {
    let no = |problem: &str| {
        let types = format!("{} and {}", a.data_type, b.data_type);
        Error::invalid("expression", format!("{}: {types}: {problem}", short(expr)))
    };
    let (Some(x), Some(y)) = (decimal(&a.data_type), decimal(&b.data_type)) else {
        return Err(no("cast one"));
    };
    if x.max_precision != y.max_precision {
        return Err(no("decimals of two widths; cast one"));
    }
    let scale = x.scale.max(y.scale);
    let to = (x.make)(x.max_precision, scale);
    let up = |from: i8| i32::from(scale) - i32::from(from);
    let bad = binder.checked();
    let raised_a = raised(binder, a, (up(x.scale), bad), b, &to, expr)?;
    Ok((raised_a, raised(binder, b, (up(y.scale), bad), a, &to, expr)?))
}

/// Multiplies a decimal by a power of ten, which gives it more digits after the point. The result has another
/// type of its width.
fn raised(
    binder: &mut Binder<'_>,
    value: &Typed,
    (by, bad): (i32, Bad),
    beside: &Typed,
    to: &DataType,
    expr: &Expr,
) -> Result<Typed> {
    if by == 0 {
        return Ok(value.clone());
    }
    let power = power(by, to).ok_or_else(|| too_far(value, beside, expr))?;
    if let Some(product) = product(binder, value, power, expr)? {
        return Ok(binder.literal(Some(product), to.clone(), expr));
    }
    let factor = binder.literal(Some(power), to.clone(), expr);
    // A row whose other operand is null has no result, so it cannot overflow.
    let scaled = Op::Scaled(bad);
    Ok(binder.node(scaled, to.clone(), &[value, &factor, beside], expr))
}

/// Ten to the power of `by`, if a type of decimals has room for it.
fn power(by: i32, to: &DataType) -> Option<i128> {
    let most = decimal(to).map_or(0, |decimal| i32::from(decimal.max_precision));
    u32::try_from(by).ok().and_then(|by| 10i128.checked_pow(by)).filter(|_| by <= most)
}

fn too_far(value: &Typed, beside: &Typed, expr: &Expr) -> Error {
    let types = format!("{} and {}", value.data_type, beside.data_type);
    Error::invalid("expression", format!("{}: {types}: scales too far apart", short(expr)))
}

/// A constant times a power of ten, if that fits.
fn product(binder: &Binder<'_>, value: &Typed, power: i128, expr: &Expr) -> Result<Option<i128>> {
    let [least, most] = limits(binder.number(expr, value)?);
    let Op::Literal(Some(raw)) = binder.plan.nodes[value.id].op else { return Ok(None) };
    Ok(raw.checked_mul(power).filter(|product| (least..=most).contains(product)))
}

/// Divides a decimal that is first multiplied by a power of ten. The product may not fit where the quotient
/// does, as in arrow-arith, so both are one step.
fn quotient(
    binder: &mut Binder<'_>,
    (a, b): (&Typed, &Typed),
    by: i32,
    to: &DataType,
    bad: Bad,
    expr: &Expr,
) -> Result<Typed> {
    let power = power(by, to).ok_or_else(|| too_far(a, b, expr))?;
    let op = Op::Arithmetic(Arithmetic::Div, bad);
    if let Some(product) = product(binder, a, power, expr)? {
        let a = binder.literal(Some(product), to.clone(), expr);
        return Ok(binder.node(op, to.clone(), &[&a, b], expr));
    }
    let factor = binder.literal(Some(power), to.clone(), expr);
    Ok(binder.node(op, to.clone(), &[a, b, &factor], expr))
}

/// Binds an operation on two decimals of one width.
pub(super) fn bind(
    binder: &mut Binder<'_>,
    op: Arithmetic,
    a: Typed,
    b: Typed,
    options: &Options,
    expr: &Expr,
) -> Result<Typed> {
    let no = |problem: String| Error::invalid("expression", format!("{}: {problem}", short(expr)));
    let types = format!("{} and {}", a.data_type, b.data_type);
    let (Some(x), Some(y)) = (decimal(&a.data_type), decimal(&b.data_type)) else {
        return Err(no(types.clone()));
    };
    if x.max_precision != y.max_precision {
        return Err(no(format!("{}: decimals of two widths; cast one", types)));
    }
    let (p1, s1, p2, s2) =
        (i32::from(x.precision), i32::from(x.scale), i32::from(y.precision), i32::from(y.scale));
    // The powers of ten for each operand, and the result's precision and scale.
    let (up1, up2, precision, scale) = match op {
        Arithmetic::Add | Arithmetic::Sub => {
            let scale = s1.max(s2);
            (scale - s1, scale - s2, scale + (p1 - s1).max(p2 - s2) + 1, scale)
        }
        Arithmetic::Mul => {
            if s1 + s2 > i32::from(x.max_scale) {
                return Err(no(format!("{}: the scale would be more than {}", types, x.max_scale)));
            }
            if s1 + s2 < i32::from(i8::MIN) {
                return Err(no(format!("{}: the scale would be less than {}", types, i8::MIN)));
            }
            (0, 0, p1 + p2 + 1, s1 + s2)
        }
        Arithmetic::Div => {
            // Four more digits, as in PostgreSQL and MySQL.
            let scale = (s1 + 4).min(i32::from(x.max_scale));
            let up = scale - s1 + s2;
            // A type has at least as many digits as its scale.
            (up.max(0), (-up).max(0), (p1 + up).max(scale), scale)
        }
        Arithmetic::Rem => {
            let scale = s1.max(s2);
            (scale - s1, scale - s2, scale + (p1 - s1).min(p2 - s2), scale)
        }
    };
    let precision = precision.clamp(1, i32::from(x.max_precision)) as u8;
    let to = (x.make)(precision, scale as i8);
    let by_zero = if options.division_by_zero_is_null { Bad::Null } else { Bad::Fails };
    // A division that overflows results in null, also before it begins.
    let divides = matches!(op, Arithmetic::Div | Arithmetic::Rem);
    let bad = if divides && options.division_by_zero_is_null { Bad::Null } else { binder.checked() };
    let raised_b = raised(binder, &b, (up2, bad), &a, &to, expr)?;
    if op == Arithmetic::Div && up1 > 0 {
        return quotient(binder, (&a, &b), up1, &to, by_zero, expr);
    }
    let raised_a = raised(binder, &a, (up1, bad), &b, &to, expr)?;
    let bad = if divides { by_zero } else { binder.checked() };
    Ok(binder.node(Op::Arithmetic(op, bad), to, &[&raised_a, &raised_b], expr))
}
