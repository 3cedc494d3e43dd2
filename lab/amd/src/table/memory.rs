//! Instructions that access memory or other lanes.

use super::row::Format::{Ds, Global, Smem, Vop1, Vop3};
use super::row::{Action, N, Part, Row, row};

fn load(bytes: u8) -> Action {
    Action::Load { bytes, signed: false, into: Part::Whole }
}

fn load_part(bytes: u8, signed: bool, into: Part) -> Action {
    Action::Load { bytes, signed, into }
}

fn store(bytes: u8) -> Action {
    Action::Store { bytes, high: false }
}

fn store_high(bytes: u8) -> Action {
    Action::Store { bytes, high: true }
}

fn add(bytes: u8) -> Action {
    Action::Atomic { bytes, operands: 1, run: |old, [by, _]| old.wrapping_add(by) }
}

/// Compare-and-swap: the operands are the new value and the expected old one.
fn swap(bytes: u8) -> Action {
    Action::Atomic { bytes, operands: 2, run: |old, [new, must]| if old == must { new } else { old } }
}

pub(super) fn rows() -> Vec<Row> {
    let words = |words| Action::ScalarLoad { words };
    vec![
        row(Smem, [0, 0, 0, 0], "s_load_dword 11:s_load_b32", words(1)),
        row(Smem, [1, 1, 1, 1], "s_load_dwordx2 11:s_load_b64", words(2)),
        row(Smem, [2, 2, 2, 2], "s_load_dwordx4 11:s_load_b128", words(4)),
        row(Smem, [3, 3, 3, 3], "s_load_dwordx8 11:s_load_b256", words(8)),
        row(Smem, [4, 4, 4, 4], "s_load_dwordx16 11:s_load_b512", words(16)),
        row(Global, [16, 8, 16, 32], "global_load_ubyte 11:global_load_u8", load(1)),
        row(Global, [17, 9, 17, 34], "global_load_sbyte 11:global_load_i8", load_part(1, true, Part::Whole)),
        row(Global, [18, 10, 18, 36], "global_load_ushort 11:global_load_u16", load(2)),
        row(Global, [20, 12, 20, 40], "global_load_dword 11:global_load_b32", load(4)),
        row(Global, [21, 13, 21, 42], "global_load_dwordx2 11:global_load_b64", load(8)),
        row(Global, [23, 14, 23, 46], "global_load_dwordx4 11:global_load_b128", load(16)),
        row(
            Global,
            [N, 32, 30, 60],
            "global_load_ubyte_d16 11:global_load_d16_u8",
            load_part(1, false, Part::Low),
        ),
        row(
            Global,
            [N, 34, 31, 62],
            "global_load_sbyte_d16 11:global_load_d16_i8",
            load_part(1, true, Part::Low),
        ),
        row(
            Global,
            [N, 36, 32, 64],
            "global_load_short_d16 11:global_load_d16_b16",
            load_part(2, false, Part::Low),
        ),
        row(
            Global,
            [N, 33, 33, 66],
            "global_load_ubyte_d16_hi 11:global_load_d16_hi_u8",
            load_part(1, false, Part::High),
        ),
        row(
            Global,
            [N, 35, 34, 68],
            "global_load_sbyte_d16_hi 11:global_load_d16_hi_i8",
            load_part(1, true, Part::High),
        ),
        row(
            Global,
            [37, 37, 35, 70],
            "global_load_short_d16_hi 11:global_load_d16_hi_b16",
            load_part(2, false, Part::High),
        ),
        row(Global, [24, 24, 24, 48], "global_store_byte 11:global_store_b8", store(1)),
        row(Global, [26, 26, 25, 50], "global_store_short 11:global_store_b16", store(2)),
        row(Global, [28, 28, 26, 52], "global_store_dword 11:global_store_b32", store(4)),
        row(Global, [29, 29, 27, 54], "global_store_dwordx2 11:global_store_b64", store(8)),
        row(Global, [30, 31, 28, 56], "global_store_dwordx3 11:global_store_b96", store(12)),
        row(Global, [31, 30, 29, 58], "global_store_dwordx4 11:global_store_b128", store(16)),
        row(Global, [25, 25, 36, 72], "global_store_byte_d16_hi 11:global_store_d16_hi_b8", store_high(1)),
        row(Global, [27, 27, 37, 74], "global_store_short_d16_hi 11:global_store_d16_hi_b16", store_high(2)),
        row(Global, [66, 50, 53, 106], "global_atomic_add 11:global_atomic_add_u32", add(4)),
        row(Global, [98, 82, 67, 134], "global_atomic_add_x2 11:global_atomic_add_u64", add(8)),
        row(Global, [65, 49, 52, 104], "global_atomic_cmpswap 11:global_atomic_cmpswap_b32", swap(4)),
        row(Global, [97, 81, 66, 132], "global_atomic_cmpswap_x2 11:global_atomic_cmpswap_b64", swap(8)),
        row(Ds, [63, 179, 179, 179], "ds_bpermute_b32", Action::Permute),
        row(Vop1, [2, 2, 2, 2], "v_readfirstlane_b32", Action::FirstLane),
        row(Vop3, [649, 864, 864, 864], "v_readlane_b32", Action::OneLane),
        row(Vop3, [650, 865, 865, 865], "v_writelane_b32", Action::IntoLane),
    ]
}
