//! Arithmetic of decimals, as arrow-arith does it: operands are brought to a common scale, every step is checked in the width of
//! the type, and the precision is that of the largest result but for the type's own.

use arrow_schema::DataType;

use super::binder::{Binder, Typed};
use super::plan::{Bad, Op};
use super::print::short;
use super::{Arithmetic, Expr, Options};
use crate::{Error, Result};

/// What a decimal type can have.
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

/// Whether a type is one of decimals.
pub(super) fn is_decimal(data_type: &DataType) -> bool {
    decimal(data_type).is_some()
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
    // Powers of ten for each operand, and the result's precision and scale.
    let (up1, up2, precision, scale) = match op {
        Arithmetic::Add | Arithmetic::Sub => {
            let scale = s1.max(s2);
            (scale - s1, scale - s2, scale + (p1 - s1).max(p2 - s2) + 1, scale)
        }
        Arithmetic::Mul => {
            if s1 + s2 > i32::from(x.max_scale) {
                return Err(no(format!("{}: the scale would be more than {}", types, x.max_scale)));
            }
            (0, 0, p1 + p2 + 1, s1 + s2)
        }
        Arithmetic::Div => {
            // As PostgreSQL and MySQL: four digits more.
            let scale = (s1 + 4).min(i32::from(x.max_scale));
            let up = scale - s1 + s2;
            (up.max(0), (-up).max(0), p1 + up, scale)
        }
        Arithmetic::Rem => {
            let scale = s1.max(s2);
            (scale - s1, scale - s2, scale + (p1 - s1).min(p2 - s2), scale)
        }
    };
    let precision = precision.clamp(1, i32::from(x.max_precision)) as u8;
    let to = (x.make)(precision, scale as i8);
    let by_zero = if options.division_by_zero_is_null { Bad::Null } else { Bad::Fails };
    // Always checked: also where arrow-rs' function is called "wrapping".
    let overflow = if options.overflow == super::Overflow::Null { Bad::Null } else { Bad::Fails };
    let mut raised = |value: &Typed, by: i32, beside: &Typed| -> Result<Typed> {
        if by == 0 {
            return Ok(value.clone());
        }
        let power = u32::try_from(by).ok().and_then(|by| 10i128.checked_pow(by));
        let power = power.filter(|_| by <= i32::from(x.max_precision));
        let power = power.ok_or_else(|| no(format!("{}: scales too far apart", types)))?;
        let factor = binder.literal(Some(power), to.clone(), expr);
        // A row without a partner has no result, and so none that is too large.
        Ok(binder.node(Op::Scaled(overflow), to.clone(), &[value, &factor, beside], expr))
    };
    let (a, b) = (raised(&a, up1, &b)?, raised(&b, up2, &a)?);
    let bad = if matches!(op, Arithmetic::Div | Arithmetic::Rem) { by_zero } else { overflow };
    Ok(binder.node(Op::Arithmetic(op, bad), to, &[&a, &b], expr))
}
