//! Scalar instructions: operations on one value for the whole wave, and branches.

use super::row::Format::*;
use super::row::{Action, N, Row, Scalar, Waits, When, row};

type Run = fn(u64, u64, bool) -> (u64, Option<bool>);

/// An operation whose two operands are as wide as the result.
fn two(bits: u32, run: Run) -> Action {
    Action::Scalar(Scalar { to: bits, from: [bits, bits], run, onto: false })
}

fn one(to: u32, from: u32, run: Run) -> Action {
    Action::Scalar(Scalar { to, from: [from, 0], run, onto: false })
}

fn shift(bits: u32, run: Run) -> Action {
    Action::Scalar(Scalar { to: bits, from: [bits, 32], run, onto: false })
}

fn compare(bits: u32, run: Run) -> Action {
    Action::Scalar(Scalar { to: 0, from: [bits, bits], run, onto: false })
}

/// An operation whose second operand is the instruction's immediate.
fn onto(to: u32, run: Run) -> Action {
    Action::Scalar(Scalar { to, from: [32, 32], run, onto: true })
}

/// The result, and whether it differs from 0.
fn nonzero(value: u64) -> (u64, Option<bool>) {
    (value, Some(value != 0))
}

const WORD: u64 = 0xffff_ffff;

fn add_signed(a: u64, b: u64) -> (u64, Option<bool>) {
    let (sum, overflows) = (a as i32).overflowing_add(b as i32);
    (u64::from(sum as u32), Some(overflows))
}

fn sub_signed(a: u64, b: u64) -> (u64, Option<bool>) {
    let (difference, overflows) = (a as i32).overflowing_sub(b as i32);
    (u64::from(difference as u32), Some(overflows))
}

fn add(a: u64, b: u64, carry: bool) -> (u64, Option<bool>) {
    let sum = a + b + u64::from(carry);
    (sum & WORD, Some(sum > WORD))
}

fn subtract(a: u64, b: u64, borrow: bool) -> (u64, Option<bool>) {
    let less = b + u64::from(borrow);
    (a.wrapping_sub(less) & WORD, Some(a < less))
}

fn float(value: u64) -> f32 {
    f32::from_bits(value as u32)
}

/// The position of the lowest set bit, or -1.
fn lowest(value: u64) -> u64 {
    if value == 0 { WORD } else { value.trailing_zeros().into() }
}

/// Extracts a bit field with its sign; the second operand encodes position and width.
fn signed_field(a: u64, field: u64) -> u64 {
    let (from, len) = (field & 31, (field >> 16 & 127).min(32));
    let value = a >> from << 32;
    if len == 0 { 0 } else { u64::from((((value << (32 - len)) as i64) >> (64 - len)) as u32) }
}

/// Extracts a bit field without a sign.
fn field(a: u64, field: u64) -> u64 {
    let (from, len) = (field & 31, (field >> 16 & 127).min(32));
    a >> from & ((1 << len) - 1)
}

fn arithmetic() -> Vec<Row> {
    vec![
        row(Sop2, [0, 0, 0, 0], "s_add_u32 12:s_add_co_u32", two(32, |a, b, _| add(a, b, false))),
        row(Sop2, [1, 1, 1, 1], "s_sub_u32 12:s_sub_co_u32", two(32, |a, b, _| subtract(a, b, false))),
        row(Sop2, [2, 2, 2, 2], "s_add_i32 12:s_add_co_i32", two(32, |a, b, _| add_signed(a, b))),
        row(Sop2, [3, 3, 3, 3], "s_sub_i32 12:s_sub_co_i32", two(32, |a, b, _| sub_signed(a, b))),
        row(Sop2, [4, 4, 4, 4], "s_addc_u32 12:s_add_co_ci_u32", two(32, add)),
        row(Sop2, [5, 5, 5, 5], "s_subb_u32 12:s_sub_co_ci_u32", two(32, subtract)),
        row(Sop2, [7, 7, 19, 19], "s_min_u32", two(32, |a, b, _| (a.min(b), Some(a < b)))),
        row(
            Sop2,
            [8, 8, 20, 20],
            "s_max_i32",
            two(32, |a, b, _| ((a as i32).max(b as i32) as u32 as u64, Some(a as i32 >= b as i32))),
        ),
        row(Sop2, [9, 9, 21, 21], "s_max_u32", two(32, |a, b, _| (a.max(b), Some(a >= b)))),
        row(Sop2, [36, 38, 44, 44], "s_mul_i32", two(32, |a, b, _| (a.wrapping_mul(b) & WORD, None))),
        row(Sop2, [44, 53, 45, 45], "s_mul_hi_u32", two(32, |a, b, _| ((a * b) >> 32, None))),
        row(Sop2, [47, N, N, N], "s_lshl2_add_u32", two(32, |a, b, _| add(a << 2, b, false))),
        row(Sop2, [N, 48, 16, 16], "s_lshl3_add_u32", two(32, |a, b, _| add(a << 3, b, false))),
        row(Sop2, [N, N, N, 83], "s_add_nc_u64", two(64, |a, b, _| (a.wrapping_add(b), None))),
        row(Sop2, [N, N, N, 84], "s_sub_nc_u64", two(64, |a, b, _| (a.wrapping_sub(b), None))),
        row(Sop2, [N, N, N, 85], "s_mul_u64", two(64, |a, b, _| (a.wrapping_mul(b), None))),
        row(
            Sop2,
            [N, N, N, 68],
            "s_mul_f32",
            two(32, |a, b, _| ((float(a) * float(b)).to_bits().into(), None)),
        ),
        row(
            Sop1,
            [N, N, N, 101],
            "s_cvt_f32_u32",
            one(32, 32, |a, _, _| ((a as f32).to_bits().into(), None)),
        ),
        row(Sop1, [N, N, N, 103], "s_cvt_u32_f32", one(32, 32, |a, _, _| (u64::from(float(a) as u32), None))),
        row(
            Sopk,
            [0, 0, 0, 0],
            "s_movk_i32",
            Action::Scalar(Scalar { to: 32, from: [0, 32], run: |_, imm, _| (imm, None), onto: false }),
        ),
        row(Sopk, [14, 15, 15, 15], "s_addk_i32 12:s_addk_co_i32", onto(32, |a, imm, _| add_signed(a, imm))),
        row(Sopk, [15, 16, 16, 16], "s_mulk_i32", onto(32, |a, imm, _| (a.wrapping_mul(imm) & WORD, None))),
    ]
}

fn bits() -> Vec<Row> {
    vec![
        row(Sop2, [12, 14, 22, 22], "s_and_b32", two(32, |a, b, _| nonzero(a & b))),
        row(Sop2, [13, 15, 23, 23], "s_and_b64", two(64, |a, b, _| nonzero(a & b))),
        row(Sop2, [14, 16, 24, 24], "s_or_b32", two(32, |a, b, _| nonzero(a | b))),
        row(Sop2, [15, 17, 25, 25], "s_or_b64", two(64, |a, b, _| nonzero(a | b))),
        row(Sop2, [16, 18, 26, 26], "s_xor_b32", two(32, |a, b, _| nonzero(a ^ b))),
        row(Sop2, [17, 19, 27, 27], "s_xor_b64", two(64, |a, b, _| nonzero(a ^ b))),
        row(Sop2, [18, 20, 34, 34], "s_andn2_b32 11:s_and_not1_b32", two(32, |a, b, _| nonzero(a & !b))),
        row(Sop2, [19, 21, 35, 35], "s_andn2_b64 11:s_and_not1_b64", two(64, |a, b, _| nonzero(a & !b))),
        row(
            Sop2,
            [20, 22, 36, 36],
            "s_orn2_b32 11:s_or_not1_b32",
            two(32, |a, b, _| nonzero((a | !b) & WORD)),
        ),
        row(Sop2, [21, 23, 37, 37], "s_orn2_b64 11:s_or_not1_b64", two(64, |a, b, _| nonzero(a | !b))),
        row(Sop2, [24, 26, 30, 30], "s_nor_b32", two(32, |a, b, _| nonzero(!(a | b) & WORD))),
        row(Sop2, [25, 27, 31, 31], "s_nor_b64", two(64, |a, b, _| nonzero(!(a | b)))),
        row(Sop2, [26, 28, 32, 32], "s_xnor_b32", two(32, |a, b, _| nonzero(!(a ^ b) & WORD))),
        row(Sop2, [27, 29, 33, 33], "s_xnor_b64", two(64, |a, b, _| nonzero(!(a ^ b)))),
        row(Sop2, [28, 30, 8, 8], "s_lshl_b32", shift(32, |a, by, _| nonzero(a << (by & 31) & WORD))),
        row(Sop2, [29, 31, 9, 9], "s_lshl_b64", shift(64, |a, by, _| nonzero(a << (by & 63)))),
        row(Sop2, [30, 32, 10, 10], "s_lshr_b32", shift(32, |a, by, _| nonzero(a >> (by & 31)))),
        row(Sop2, [31, 33, 11, 11], "s_lshr_b64", shift(64, |a, by, _| nonzero(a >> (by & 63)))),
        row(
            Sop2,
            [32, 34, 12, 12],
            "s_ashr_i32",
            shift(32, |a, by, _| nonzero(((a as i32 >> (by & 31)) as u32).into())),
        ),
        row(
            Sop2,
            [33, 35, 13, 13],
            "s_ashr_i64",
            shift(64, |a, by, _| nonzero((a as i64 >> (by & 63)) as u64)),
        ),
        row(Sop2, [37, 39, 38, 38], "s_bfe_u32", two(32, |a, of, _| nonzero(field(a, of)))),
        row(Sop2, [38, 40, 39, 39], "s_bfe_i32", two(32, |a, field, _| nonzero(signed_field(a, field)))),
        row(Sop2, [10, 10, 48, 48], "s_cselect_b32", two(32, |a, b, set| (if set { a } else { b }, None))),
        row(Sop2, [11, 11, 49, 49], "s_cselect_b64", two(64, |a, b, set| (if set { a } else { b }, None))),
        row(Sop1, [0, 3, 0, 0], "s_mov_b32", one(32, 32, |a, _, _| (a, None))),
        row(Sop1, [1, 4, 1, 1], "s_mov_b64", one(64, 64, |a, _, _| (a, None))),
        row(Sop1, [4, 7, 30, 30], "s_not_b32", one(32, 32, |a, _, _| nonzero(u64::from(!(a as u32))))),
        row(Sop1, [5, 8, 31, 31], "s_not_b64", one(64, 64, |a, _, _| nonzero(!a))),
        row(
            Sop1,
            [8, 11, 4, 4],
            "s_brev_b32",
            one(32, 32, |a, _, _| ((a as u32).reverse_bits().into(), None)),
        ),
        row(Sop1, [12, 15, 24, 24], "s_bcnt1_i32_b32", one(32, 32, |a, _, _| nonzero(a.count_ones().into()))),
        row(Sop1, [13, 16, 25, 25], "s_bcnt1_i32_b64", one(32, 64, |a, _, _| nonzero(a.count_ones().into()))),
        row(Sop1, [16, 19, 8, 8], "s_ff1_i32_b32 11:s_ctz_i32_b32", one(32, 32, |a, _, _| (lowest(a), None))),
        row(Sop1, [17, 20, 9, 9], "s_ff1_i32_b64 11:s_ctz_i32_b64", one(32, 64, |a, _, _| (lowest(a), None))),
        row(Sop1, [26, 29, 18, 18], "s_bitset1_b32", onto(32, |a, bit, _| (a | 1 << (bit & 31), None))),
    ]
}

fn compares() -> Vec<Row> {
    vec![
        row(Sopc, [2, 2, 2, 2], "s_cmp_gt_i32", compare(32, |a, b, _| (0, Some(a as i32 > b as i32)))),
        row(Sopc, [4, 4, 4, 4], "s_cmp_lt_i32", compare(32, |a, b, _| (0, Some((a as i32) < b as i32)))),
        row(Sopc, [6, 6, 6, 6], "s_cmp_eq_u32", compare(32, |a, b, _| (0, Some(a == b)))),
        row(Sopc, [7, 7, 7, 7], "s_cmp_lg_u32", compare(32, |a, b, _| (0, Some(a != b)))),
        row(Sopc, [8, 8, 8, 8], "s_cmp_gt_u32", compare(32, |a, b, _| (0, Some(a > b)))),
        row(Sopc, [9, 9, 9, 9], "s_cmp_ge_u32", compare(32, |a, b, _| (0, Some(a >= b)))),
        row(Sopc, [10, 10, 10, 10], "s_cmp_lt_u32", compare(32, |a, b, _| (0, Some(a < b)))),
        row(Sopc, [11, 11, 11, 11], "s_cmp_le_u32", compare(32, |a, b, _| (0, Some(a <= b)))),
        row(
            Sopc,
            [12, 12, 12, 12],
            "s_bitcmp0_b32",
            compare(32, |a, bit, _| (0, Some(a >> (bit & 31) & 1 == 0))),
        ),
        row(
            Sopc,
            [13, 13, 13, 13],
            "s_bitcmp1_b32",
            compare(32, |a, bit, _| (0, Some(a >> (bit & 31) & 1 == 1))),
        ),
        row(Sopc, [18, 18, 16, 16], "s_cmp_eq_u64", compare(64, |a, b, _| (0, Some(a == b)))),
        row(Sopc, [19, 19, 17, 17], "s_cmp_lg_u64", compare(64, |a, b, _| (0, Some(a != b)))),
        row(Sopk, [2, 3, 3, N], "s_cmpk_eq_i32", onto(0, |a, imm, _| (0, Some(a == imm)))),
        row(Sopk, [3, 4, 4, N], "s_cmpk_lg_i32", onto(0, |a, imm, _| (0, Some(a != imm)))),
        // Unsigned comparisons have unsigned immediates.
        row(Sopk, [10, 11, 11, N], "s_cmpk_gt_u32", onto(0, |a, imm, _| (0, Some(a > (imm & 0xffff))))),
        row(Sopk, [12, 13, 13, N], "s_cmpk_lt_u32", onto(0, |a, imm, _| (0, Some(a < (imm & 0xffff))))),
    ]
}

fn control() -> Vec<Row> {
    let save = Action::SaveExec;
    vec![
        row(Sop1, [N, 60, 32, 32], "s_and_saveexec_b32", save(32, |a, exec| a & exec)),
        row(Sop1, [32, 36, 33, 33], "s_and_saveexec_b64", save(64, |a, exec| a & exec)),
        row(Sop1, [N, 61, 34, 34], "s_or_saveexec_b32", save(32, |a, exec| a | exec)),
        row(Sop1, [33, 37, 35, 35], "s_or_saveexec_b64", save(64, |a, exec| a | exec)),
        row(
            Sop1,
            [N, 63, 48, 48],
            "s_andn2_saveexec_b32 11:s_and_not1_saveexec_b32",
            save(32, |a, exec| a & !exec),
        ),
        row(
            Sop1,
            [35, 39, 49, 49],
            "s_andn2_saveexec_b64 11:s_and_not1_saveexec_b64",
            save(64, |a, exec| a & !exec),
        ),
        row(Sopp, [2, 2, 32, 32], "s_branch", Action::Branch(When::Always)),
        row(Sopp, [4, 4, 33, 33], "s_cbranch_scc0", Action::Branch(When::Condition(false))),
        row(Sopp, [5, 5, 34, 34], "s_cbranch_scc1", Action::Branch(When::Condition(true))),
        row(Sopp, [6, 6, 35, 35], "s_cbranch_vccz", Action::Branch(When::Vcc(false))),
        row(Sopp, [7, 7, 36, 36], "s_cbranch_vccnz", Action::Branch(When::Vcc(true))),
        row(Sopp, [8, 8, 37, 37], "s_cbranch_execz", Action::Branch(When::Exec(false))),
        row(Sopp, [9, 9, 38, 38], "s_cbranch_execnz", Action::Branch(When::Exec(true))),
        row(Sopp, [1, 1, 48, 48], "s_endpgm", Action::End),
        // Instructions that only affect timing. The hazards that they prevent are not modelled.
        row(Sopp, [0, 0, 0, 0], "s_nop", Action::Nothing),
        row(Sopp, [N, 33, 5, 5], "s_clause", Action::Nothing),
        row(Sopp, [N, N, 7, 7], "s_delay_alu", Action::Nothing),
        row(Sopp, [N, 32, 4, N], "s_inst_prefetch 11:s_set_inst_prefetch_distance", Action::Nothing),
        row(Sopp, [N, N, 8, 8], "s_waitcnt_depctr 12:s_wait_alu", Action::Nothing),
        // The only message that the decoder accepts releases vector registers before the end.
        row(Sopp, [N, N, 54, 54], "s_sendmsg", Action::Nothing),
        row(Sopp, [12, 12, 9, N], "s_waitcnt", Action::Wait(Waits::Packed)),
        row(Sopp, [N, N, N, 64], "s_wait_loadcnt", Action::Wait(Waits::Loads)),
        row(Sopp, [N, N, N, 70], "s_wait_dscnt", Action::Wait(Waits::Shared)),
        row(Sopp, [N, N, N, 71], "s_wait_kmcnt", Action::Wait(Waits::Scalars)),
        row(Sopp, [N, N, N, 72], "s_wait_loadcnt_dscnt", Action::Wait(Waits::LoadsAndShared)),
    ]
}

pub(super) fn rows() -> Vec<Row> {
    [arithmetic(), bits(), compares(), control()].into_iter().flatten().collect()
}
