//! Vector instructions that compute each lane on its own.

use super::lanes::{carries, clampable, mixed, packed, plain};
use super::row::Format::*;
use super::row::{Action, Kind::*, N, Row, row};

type Words<const K: usize> = [u32; K];
type Halves<const K: usize> = [u16; K];

fn add(a: u64, b: u64, carry: u64) -> (u64, bool) {
    let sum = a + b + carry;
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

fn subtract(a: u64, b: u64, borrow: u64) -> (u64, bool) {
    (a.wrapping_sub(b + borrow) & 0xffff_ffff, a < b + borrow)
}

fn add_carrying() -> Action {
    carries(B32, [B32; 2], |[a, b]| add(a, b, 0))
}

fn subtract_borrowing() -> Action {
    carries(B32, [B32; 2], |[a, b]| subtract(a, b, 0))
}

fn subtract_from_borrowing() -> Action {
    carries(B32, [B32; 2], |[a, b]| subtract(b, a, 0))
}

fn shift_left_wide() -> Action {
    mixed(B64, [B32, B64], |[by, a]| a << (by & 63))
}

fn add_halves() -> Action {
    plain(|[a, b]: Halves<2>| a.wrapping_add(b))
}

fn subtract_halves() -> Action {
    plain(|[a, b]: Halves<2>| a.wrapping_sub(b))
}

fn shift_left_half() -> Action {
    plain(|[by, a]: Halves<2>| a << (by & 15))
}

fn shift_right_half() -> Action {
    plain(|[by, a]: Halves<2>| a >> (by & 15))
}

fn shift_right_signed_half() -> Action {
    plain(|[by, a]: [i16; 2]| a >> (by & 15))
}

fn multiply_add_half() -> Action {
    plain(|[a, b, c]: Halves<3>| a.wrapping_mul(b).wrapping_add(c))
}

fn add_words() -> Action {
    clampable(|[a, b]: Words<2>| a.wrapping_add(b), |[a, b]| a.saturating_add(b))
}

fn low24(a: u64) -> u64 {
    a & 0xff_ffff
}

pub(super) fn choose() -> Action {
    mixed(B32, [B32, B32, Mask], |[a, b, set]| if set != 0 { b } else { a })
}

pub(super) fn move_word() -> Action {
    plain(|[a]: Words<1>| a)
}

pub(super) fn and_words() -> Action {
    plain(|[a, b]: Words<2>| a & b)
}

pub(super) fn shift_left_word() -> Action {
    plain(|[by, a]: Words<2>| a << (by & 31))
}

/// The position, from above, of the highest bit that differs from the sign; -1 if none does.
fn sign_bits(a: u32) -> u32 {
    let differing = (a ^ ((a as i32) >> 31) as u32).leading_zeros();
    if differing == 32 { !0 } else { differing }
}

/// A byte of `high` and `low`, or a constant, as the selector says.
fn permuted(high: u32, low: u32, selector: u32) -> u32 {
    let both = (u64::from(high) << 32 | u64::from(low)) as i64;
    (0..4).fold(0, |all, i| {
        let byte = match selector >> (8 * i) & 0xff {
            from @ 0..=7 => (both >> (8 * from)) as u32 & 0xff,
            // The sign of one of the four halves, repeated in all bits.
            half @ 8..=11 => ((both << (48 - 16 * (half - 8))) >> 63) as u32 & 0xff,
            12 => 0,
            _ => 0xff,
        };
        all | byte << (8 * i)
    })
}

/// Counts the mask's lanes below `lane` among the 32 lanes from `first` on.
fn lanes_below(mask: u64, lane: u64, first: u64) -> u64 {
    let lower = lane.saturating_sub(first).min(32);
    (mask & ((1 << lower) - 1)).count_ones().into()
}

fn words() -> Vec<Row> {
    vec![
        row(Vop1, [1, 1, 1, 1], "v_mov_b32", move_word()),
        row(Vop1, [56, N, N, N], "v_mov_b64", plain(|[a]: [u64; 1]| a)),
        row(Vop1, [43, 55, 55, 55], "v_not_b32", plain(|[a]: Words<1>| !a)),
        row(Vop1, [44, 56, 56, 56], "v_bfrev_b32", plain(|[a]: Words<1>| a.reverse_bits())),
        row(
            Vop1,
            [45, 57, 57, 57],
            "v_ffbh_u32 11:v_clz_i32_u32",
            plain(|[a]: Words<1>| if a == 0 { !0 } else { a.leading_zeros() }),
        ),
        row(
            Vop1,
            [46, 58, 58, 58],
            "v_ffbl_b32 11:v_ctz_i32_b32",
            plain(|[a]: Words<1>| if a == 0 { !0 } else { a.trailing_zeros() }),
        ),
        row(Vop1, [47, 59, 59, 59], "v_ffbh_i32 11:v_cls_i32", plain(|[a]: Words<1>| sign_bits(a))),
        row(Vop2, [0, 1, 1, 1], "v_cndmask_b32", choose()),
        row(Vop2, [13, 18, 18, 18], "v_max_i32", plain(|[a, b]: [i32; 2]| a.max(b))),
        row(Vop2, [14, 19, 19, 19], "v_min_u32", plain(|[a, b]: Words<2>| a.min(b))),
        row(Vop2, [15, 20, 20, 20], "v_max_u32", plain(|[a, b]: Words<2>| a.max(b))),
        row(Vop2, [16, 22, 25, 25], "v_lshrrev_b32", plain(|[by, a]: Words<2>| a >> (by & 31))),
        row(Vop2, [17, 24, 26, 26], "v_ashrrev_i32", plain(|[by, a]: [i32; 2]| a >> (by & 31))),
        row(Vop2, [18, 26, 24, 24], "v_lshlrev_b32", shift_left_word()),
        row(Vop2, [19, 27, 27, 27], "v_and_b32", and_words()),
        row(Vop2, [20, 28, 28, 28], "v_or_b32", plain(|[a, b]: Words<2>| a | b)),
        row(Vop2, [21, 29, 29, 29], "v_xor_b32", plain(|[a, b]: Words<2>| a ^ b)),
        row(Vop2, [25, N, N, N], "v_add_co_u32", add_carrying()),
        row(Vop2, [26, N, N, N], "v_sub_co_u32", subtract_borrowing()),
        row(Vop2, [27, N, N, N], "v_subrev_co_u32", subtract_from_borrowing()),
        row(Vop3, [N, 783, 768, 768], "v_add_co_u32", add_carrying()),
        row(Vop3, [N, 784, 769, 769], "v_sub_co_u32", subtract_borrowing()),
        row(
            Vop2,
            [28, 40, 32, 32],
            "v_addc_co_u32 10:v_add_co_ci_u32",
            carries(B32, [B32, B32, Mask], |[a, b, carry]| add(a, b, carry)),
        ),
        row(
            Vop2,
            [29, 41, 33, 33],
            "v_subb_co_u32 10:v_sub_co_ci_u32",
            carries(B32, [B32, B32, Mask], |[a, b, borrow]| subtract(a, b, borrow)),
        ),
        row(
            Vop2,
            [30, 42, 34, 34],
            "v_subbrev_co_u32 10:v_subrev_co_ci_u32",
            carries(B32, [B32, B32, Mask], |[a, b, borrow]| subtract(b, a, borrow)),
        ),
        row(Vop2, [52, 37, 37, 37], "v_add_u32 10:v_add_nc_u32", add_words()),
        row(
            Vop2,
            [53, 38, 38, 38],
            "v_sub_u32 10:v_sub_nc_u32",
            clampable(|[a, b]: Words<2>| a.wrapping_sub(b), |[a, b]| a.saturating_sub(b)),
        ),
        row(
            Vop2,
            [54, 39, 39, 39],
            "v_subrev_u32 10:v_subrev_nc_u32",
            clampable(|[a, b]: Words<2>| b.wrapping_sub(a), |[a, b]| b.saturating_sub(a)),
        ),
        row(Vop2, [N, N, N, 31], "v_lshlrev_b64", shift_left_wide()),
        row(Vop3, [655, 767, 828, N], "v_lshlrev_b64", shift_left_wide()),
        row(Vop3, [656, 768, 829, 829], "v_lshrrev_b64", mixed(B64, [B32, B64], |[by, a]| a >> (by & 63))),
        row(
            Vop3,
            [657, 769, 830, 830],
            "v_ashrrev_i64",
            mixed(B64, [B32, B64], |[by, a]| (a as i64 >> (by & 63)) as u64),
        ),
        row(
            Vop3,
            [456, 328, 528, 528],
            "v_bfe_u32",
            plain(|[a, from, len]: Words<3>| a >> (from & 31) & ((1 << (len & 31)) - 1)),
        ),
        row(
            Vop3,
            [457, 329, 529, 529],
            "v_bfe_i32",
            plain(|[a, from, len]: Words<3>| {
                let (field, unused) = (u64::from(a >> (from & 31)), 64 - (len & 31));
                if unused == 64 { 0 } else { ((field << unused) as i64 >> unused) as u32 }
            }),
        ),
        row(Vop3, [458, 330, 530, 530], "v_bfi_b32", plain(|[mask, a, b]: Words<3>| mask & a | !mask & b)),
        row(
            Vop3,
            [462, 334, 534, 534],
            "v_alignbit_b32",
            mixed(B32, [B32, B32, B16], |[high, low, by]| ((high << 32 | low) >> (by & 31)) & 0xffff_ffff),
        ),
        row(Vop3, [466, 339, 539, 539], "v_min3_u32", plain(|[a, b, c]: Words<3>| a.min(b).min(c))),
        row(Vop3, [469, 342, 542, 542], "v_max3_u32", plain(|[a, b, c]: Words<3>| a.max(b).max(c))),
        row(
            Vop3,
            [450, 322, 522, 522],
            "v_mad_i32_i24",
            plain(|[a, b, c]: [i32; 3]| (a << 8 >> 8).wrapping_mul(b << 8 >> 8).wrapping_add(c)),
        ),
        row(
            Vop3,
            [471, 344, 544, 544],
            "v_med3_i32",
            plain(|[a, b, c]: [i32; 3]| a.max(b).min(a.min(b).max(c))),
        ),
        row(
            Vop3,
            [488, 374, 766, 766],
            "v_mad_u64_u32 12:v_mad_co_u64_u32",
            carries(B64, [B32, B32, B64], |[a, b, c]| (a * b).overflowing_add(c)),
        ),
        row(
            Vop3,
            [489, 375, 767, 767],
            "v_mad_i64_i32 12:v_mad_co_i64_i32",
            carries(B64, [B32, B32, B64], |[a, b, c]| {
                let all = i128::from(a as i32) * i128::from(b as i32) + i128::from(c as i64);
                (all as u64, all >> 64 & 1 != 0)
            }),
        ),
        row(Vop3, [493, 836, 580, 580], "v_perm_b32", plain(|[a, b, by]: Words<3>| permuted(a, b, by))),
        row(
            Vop3,
            [509, 838, 582, 582],
            "v_lshl_add_u32",
            plain(|[a, by, b]: Words<3>| (a << (by & 31)).wrapping_add(b)),
        ),
        row(
            Vop3,
            [510, 839, 583, 583],
            "v_add_lshl_u32",
            plain(|[a, b, by]: Words<3>| a.wrapping_add(b) << (by & 31)),
        ),
        row(
            Vop3,
            [511, 877, 597, 597],
            "v_add3_u32",
            plain(|[a, b, c]: Words<3>| a.wrapping_add(b).wrapping_add(c)),
        ),
        row(Vop3, [512, 879, 598, 598], "v_lshl_or_b32", plain(|[a, by, b]: Words<3>| a << (by & 31) | b)),
        row(Vop3, [513, 881, 599, 599], "v_and_or_b32", plain(|[a, b, c]: Words<3>| a & b | c)),
        row(Vop3, [514, 882, 600, 600], "v_or3_b32", plain(|[a, b, c]: Words<3>| a | b | c)),
        row(Vop3, [N, 376, 576, 576], "v_xor3_b32", plain(|[a, b, c]: Words<3>| a ^ b ^ c)),
        row(
            Vop3,
            [520, N, N, N],
            "v_lshl_add_u64",
            mixed(B64, [B64, B32, B64], |[a, by, b]| (a << (by & 7)).wrapping_add(b)),
        ),
        row(
            Vop2,
            [6, 9, 9, 9],
            "v_mul_i32_i24",
            plain(|[a, b]: [i32; 2]| (a << 8 >> 8).wrapping_mul(b << 8 >> 8)),
        ),
        row(
            Vop2,
            [8, 11, 11, 11],
            "v_mul_u32_u24",
            mixed(B32, [B32; 2], |[a, b]| (low24(a) * low24(b)) & 0xffff_ffff),
        ),
        row(
            Vop2,
            [9, 12, 12, 12],
            "v_mul_hi_u32_u24",
            mixed(B32, [B32; 2], |[a, b]| (low24(a) * low24(b)) >> 32),
        ),
        row(
            Vop3,
            [451, 323, 523, 523],
            "v_mad_u32_u24",
            plain(|[a, b, c]: Words<3>| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)),
        ),
        row(Vop3, [499, 837, 581, 581], "v_xad_u32", plain(|[a, b, c]: Words<3>| (a ^ b).wrapping_add(c))),
        row(Vop3, [N, N, 610, 610], "v_maxmin_u32", plain(|[a, b, c]: Words<3>| a.max(b).min(c))),
        row(
            Vop3,
            [668, 895, 806, 806],
            "v_add_i32 10:v_add_nc_i32",
            clampable(|[a, b]: [i32; 2]| a.wrapping_add(b), |[a, b]| a.saturating_add(b)),
        ),
        row(
            Vop3,
            [647, 364, 814, 814],
            "v_mul_hi_i32",
            mixed(B32, [B32; 2], |[a, b]| {
                ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u64 & 0xffff_ffff
            }),
        ),
        row(Vop2, [40, N, N, N], "v_subrev_u16", plain(|[a, b]: Halves<2>| b.wrapping_sub(a))),
        row(Vop2, [41, N, N, N], "v_mul_lo_u16", plain(|[a, b]: Halves<2>| a.wrapping_mul(b))),
        row(Vop3, [N, 773, 773, 773], "v_mul_lo_u16", plain(|[a, b]: Halves<2>| a.wrapping_mul(b))),
        row(Vop3, [645, 361, 812, 812], "v_mul_lo_u32", plain(|[a, b]: Words<2>| a.wrapping_mul(b))),
        row(Vop3, [646, 362, 813, 813], "v_mul_hi_u32", mixed(B32, [B32; 2], |[a, b]| (a * b) >> 32)),
        row(
            Vop3,
            [651, 868, 798, 798],
            "v_bcnt_u32_b32",
            plain(|[a, b]: Words<2>| a.count_ones().wrapping_add(b)),
        ),
        row(
            Vop3,
            [652, 869, 799, 799],
            "v_mbcnt_lo_u32_b32",
            mixed(B32, [B32, B32, Lane], |[mask, more, lane]| {
                (lanes_below(mask, lane, 0) + more) & 0xffff_ffff
            }),
        ),
        row(
            Vop3,
            [653, 870, 800, 800],
            "v_mbcnt_hi_u32_b32",
            mixed(B32, [B32, B32, Lane], |[mask, more, lane]| {
                (lanes_below(mask, lane, 32) + more) & 0xffff_ffff
            }),
        ),
    ]
}

fn halves() -> Vec<Row> {
    vec![
        row(Vop1, [N, N, 28, N], "v_mov_b16", plain(|[a]: Halves<1>| a)),
        row(Vop2, [38, N, N, N], "v_add_u16", add_halves()),
        row(Vop3, [N, 771, 771, 771], "v_add_nc_u16", add_halves()),
        row(Vop2, [39, N, N, N], "v_sub_u16", subtract_halves()),
        row(Vop3, [N, 772, 772, 772], "v_sub_nc_u16", subtract_halves()),
        row(Vop2, [42, N, N, N], "v_lshlrev_b16", shift_left_half()),
        row(Vop3, [N, 788, 824, 824], "v_lshlrev_b16", shift_left_half()),
        row(Vop2, [43, N, N, N], "v_lshrrev_b16", shift_right_half()),
        row(Vop3, [N, 775, 825, 825], "v_lshrrev_b16", shift_right_half()),
        row(Vop2, [44, N, N, N], "v_ashrrev_i16", shift_right_signed_half()),
        row(Vop3, [N, 776, 826, 826], "v_ashrrev_i16", shift_right_signed_half()),
        row(Vop2, [47, N, N, N], "v_max_u16", plain(|[a, b]: Halves<2>| a.max(b))),
        row(Vop3, [N, 777, 777, 777], "v_max_u16", plain(|[a, b]: Halves<2>| a.max(b))),
        row(Vop2, [48, N, N, N], "v_max_i16", plain(|[a, b]: [i16; 2]| a.max(b))),
        row(Vop3, [N, 778, 778, 778], "v_max_i16", plain(|[a, b]: [i16; 2]| a.max(b))),
        row(Vop3, [491, N, N, N], "v_mad_legacy_u16", multiply_add_half()),
        row(Vop3, [N, 832, 577, 577], "v_mad_u16", multiply_add_half()),
        row(Vop3, [505, 854, 590, 590], "v_max3_u16", plain(|[a, b, c]: Halves<3>| a.max(b).max(c))),
        row(Vop3, [N, N, 866, N], "v_and_b16", plain(|[a, b]: Halves<2>| a & b)),
        row(Vop3, [N, N, 867, N], "v_or_b16", plain(|[a, b]: Halves<2>| a | b)),
        row(Vop3, [N, N, 868, N], "v_xor_b16", plain(|[a, b]: Halves<2>| a ^ b)),
        row(
            Vop3,
            [N, N, 605, N],
            "v_cndmask_b16",
            mixed(B16, [B16, B16, Mask], |[a, b, set]| if set != 0 { b } else { a }),
        ),
        row(Vop3p, [5, N, N, N], "v_pk_lshrrev_b16", packed(B32, 16, false, |by, a| a >> (by & 15))),
        row(Vop3p, [51, N, N, N], "v_pk_mov_b32", packed(B64, 32, true, |a, _| a)),
    ]
}

pub(super) fn rows() -> Vec<Row> {
    [words(), halves()].into_iter().flatten().collect()
}
