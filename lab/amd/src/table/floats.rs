//! Vector instructions on floating-point numbers, and the halves of pairs, most of which are float
//! operations.

use super::lanes::{mixed, onto, packed, plain};
use super::row::Format::*;
use super::row::{Action, Kind::*, N, Row, row};
use super::vector::{and_words, choose, move_word, shift_left_word};

type Words<const K: usize> = [u32; K];

fn add_doubles() -> Action {
    plain(|[a, b]: [f64; 2]| a + b)
}

fn multiply_doubles() -> Action {
    plain(|[a, b]: [f64; 2]| a * b)
}

fn add_floats() -> Action {
    plain(|[a, b]: [f32; 2]| a + b)
}

fn subtract_floats() -> Action {
    plain(|[a, b]: [f32; 2]| a - b)
}

fn multiply_floats() -> Action {
    plain(|[a, b]: [f32; 2]| a * b)
}

fn multiply_add_onto() -> Action {
    onto(|[a, b, sum]: [f32; 3]| a.mul_add(b, sum))
}

/// Multiplies, then adds; both steps flush denormal operands and results.
fn multiply_then_add_onto() -> Action {
    let flushed = |a: f32| if a.is_subnormal() { a * 0.0 } else { a };
    onto(move |[a, b, sum]: [f32; 3]| flushed(flushed(flushed(a) * flushed(b)) + flushed(sum)))
}

/// `a * 2^by`, rounded once: only the last product may fall below the least exponent.
pub(super) fn scaled(mut a: f64, mut by: i32) -> f64 {
    let power = |by: i32| f64::from_bits(((by + 1023) as u64) << 52);
    for _ in 0..2 {
        if by > 1023 {
            a *= power(1023);
            by -= 1023;
        } else if by < -1022 {
            // Keeps 53 bits for the last step, so that no earlier step rounds.
            a *= power(-969);
            by += 969;
        }
    }
    a * power(by.clamp(-1022, 1023))
}

fn floats() -> Vec<Row> {
    let multiply_bits = |a, b| (f32::from_bits(a as u32) * f32::from_bits(b as u32)).to_bits().into();
    let add_bits = |a, b| (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into();
    vec![
        row(Vop1, [3, 3, 3, 3], "v_cvt_i32_f64", plain(|[a]: [f64; 1]| a as i32)),
        row(Vop1, [4, 4, 4, 4], "v_cvt_f64_i32", plain(|[a]: [i32; 1]| f64::from(a))),
        row(Vop1, [5, 5, 5, 5], "v_cvt_f32_i32", plain(|[a]: [i32; 1]| a as f32)),
        row(Vop1, [6, 6, 6, 6], "v_cvt_f32_u32", plain(|[a]: [u32; 1]| a as f32)),
        row(Vop1, [7, 7, 7, 7], "v_cvt_u32_f32", plain(|[a]: [f32; 1]| a as u32)),
        row(Vop1, [8, 8, 8, 8], "v_cvt_i32_f32", plain(|[a]: [f32; 1]| a as i32)),
        row(Vop1, [15, 15, 15, 15], "v_cvt_f32_f64", plain(|[a]: [f64; 1]| a as f32)),
        row(Vop1, [16, 16, 16, 16], "v_cvt_f64_f32", plain(|[a]: [f32; 1]| f64::from(a))),
        row(Vop1, [17, 17, 17, 17], "v_cvt_f32_ubyte0", plain(|[a]: [u32; 1]| (a & 0xff) as f32)),
        row(Vop1, [21, 21, 21, 21], "v_cvt_u32_f64", plain(|[a]: [f64; 1]| a as u32)),
        row(Vop1, [22, 22, 22, 22], "v_cvt_f64_u32", plain(|[a]: [u32; 1]| f64::from(a))),
        row(Vop1, [23, 23, 23, 23], "v_trunc_f64", plain(|[a]: [f64; 1]| a.trunc())),
        row(Vop1, [26, 26, 26, 26], "v_floor_f64", plain(|[a]: [f64; 1]| a.floor())),
        row(Vop1, [28, 33, 33, 33], "v_trunc_f32", plain(|[a]: [f32; 1]| a.trunc())),
        row(Vop1, [31, 36, 36, 36], "v_floor_f32", plain(|[a]: [f32; 1]| a.floor())),
        // Hardware gives these to within one unit in the last place; here they are exactly rounded.
        row(Vop1, [34, 42, 42, 42], "v_rcp_f32", plain(|[a]: [f32; 1]| 1.0 / a)),
        row(Vop1, [37, 47, 47, 47], "v_rcp_f64", plain(|[a]: [f64; 1]| 1.0 / a)),
        row(Vop1, [35, 43, 43, 43], "v_rcp_iflag_f32", plain(|[a]: [f32; 1]| 1.0 / a)),
        row(Vop2, [1, 3, 3, 3], "v_add_f32", add_floats()),
        row(Vop2, [2, 4, 4, 4], "v_sub_f32", subtract_floats()),
        row(Vop2, [5, 8, 8, 8], "v_mul_f32", multiply_floats()),
        row(Vop2, [22, N, N, N], "v_mac_f32", multiply_then_add_onto()),
        row(Vop2, [59, 43, 43, 43], "v_fmac_f32", multiply_add_onto()),
        row(Vop2, [4, N, N, N], "v_fmac_f64", onto(|[a, b, sum]: [f64; 3]| a.mul_add(b, sum))),
        row(Vop2, [N, N, N, 2], "v_add_f64", add_doubles()),
        row(Vop3, [640, 356, 807, N], "v_add_f64", add_doubles()),
        row(Vop2, [N, N, N, 6], "v_mul_f64", multiply_doubles()),
        row(Vop3, [641, 357, 808, N], "v_mul_f64", multiply_doubles()),
        row(Vop3, [459, 331, 531, 531], "v_fma_f32", plain(|[a, b, c]: [f32; 3]| a.mul_add(b, c))),
        row(Vop3, [460, 332, 532, 532], "v_fma_f64", plain(|[a, b, c]: [f64; 3]| a.mul_add(b, c))),
        row(
            Vop3,
            [648, 866, 796, 796],
            "v_ldexp_f32",
            mixed(F32, [F32, B32], |[a, by]| {
                let a = f64::from(f32::from_bits(a as u32));
                // The intermediate value is exact: no 32-bit result needs more.
                (scaled(a, (by as i32).clamp(-500, 500)) as f32).to_bits().into()
            }),
        ),
        row(
            Vop3,
            [644, 360, 811, 811],
            "v_ldexp_f64",
            mixed(F64, [F64, B32], |[a, by]| scaled(f64::from_bits(a), by as i32).to_bits()),
        ),
        row(Vop3p, [49, N, N, N], "v_pk_mul_f32", packed(B64, 32, false, multiply_bits)),
        row(Vop3p, [50, N, N, N], "v_pk_add_f32", packed(B64, 32, false, add_bits)),
    ]
}

/// The halves of pairs that run at once; they have opcodes of their own.
fn pairs() -> Vec<Row> {
    let both = |code, name, action: fn() -> Action| {
        [VopdX, VopdY].map(|format| row(format, [N, N, code, code], name, action()))
    };
    let second = |code, name, action| row(VopdY, [N, N, code, code], name, action);
    let mut rows = vec![
        second(16, "v_dual_add_nc_u32", plain(|[a, b]: Words<2>| a.wrapping_add(b))),
        second(17, "v_dual_lshlrev_b32", shift_left_word()),
        second(18, "v_dual_and_b32", and_words()),
    ];
    rows.extend(both(0, "v_dual_fmac_f32", multiply_add_onto));
    rows.extend(both(3, "v_dual_mul_f32", multiply_floats));
    rows.extend(both(4, "v_dual_add_f32", add_floats));
    rows.extend(both(5, "v_dual_sub_f32", subtract_floats));
    rows.extend(both(8, "v_dual_mov_b32", move_word));
    rows.extend(both(9, "v_dual_cndmask_b32", choose));
    rows
}

pub(super) fn rows() -> Vec<Row> {
    [floats(), pairs()].into_iter().flatten().collect()
}
