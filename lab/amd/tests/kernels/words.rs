//! The words of the instructions that the kernels here are made of, as LLVM assembles them for three
//! generations.

use bowstring_amdi::Target;

/// The instructions of the test kernels: their text, and their encoding in words.
const GFX11: &[(&str, &[u32])] = &[
    ("s_load_b64 s[2:3], s[0:1], null", &[0xf4040080, 0xf8000000]),
    ("s_waitcnt lgkmcnt(0)", &[0xbf89fc07]),
    ("s_waitcnt lgkmcnt(1)", &[0xbf89fc17]),
    ("s_waitcnt vmcnt(1)", &[0xbf8907f7]),
    ("s_waitcnt vmcnt(0)", &[0xbf8903f7]),
    ("v_lshlrev_b32_e32 v1, 2, v0", &[0x30020082]),
    ("global_load_b32 v2, v1, s[2:3]", &[0xdc520000, 0x02020001]),
    ("global_load_b32 v3, v1, s[2:3] offset:128", &[0xdc520080, 0x03020001]),
    ("v_add_nc_u32_e32 v2, 7, v2", &[0x4a040487]),
    ("v_add_nc_u32_e32 v3, 7, v3", &[0x4a060687]),
    ("global_store_b32 v1, v2, s[2:3]", &[0xdc6a0000, 0x00020201]),
    ("s_endpgm", &[0xbfb00000]),
    ("v_mov_b32_e32 v1, 0", &[0x7e020280]),
    ("v_mov_b32_e32 v3, v2", &[0x7e060302]),
    ("global_atomic_add_u32 v1, v2, s[2:3]", &[0xdcd60000, 0x00020201]),
    ("global_atomic_add_u32 v1, v2, s[2:3] offset:2", &[0xdcd60002, 0x00020201]),
    ("s_load_b64 s[4:5], s[0:1], 0x8", &[0xf4040100, 0xf8000008]),
    ("global_atomic_cmpswap_b32 v2, v1, v[2:3], s[2:3] glc", &[0xdcd24000, 0x02020201]),
    ("s_branch 65535", &[0xbfa0ffff]),
    ("s_branch 16", &[0xbfa00010]),
    ("s_mov_b32 s4, s2", &[0xbe840002]),
    ("v_mov_b32_e32 v2, 1", &[0x7e040281]),
    ("v_mov_b32_e32 v200, v2", &[0x7f900302]),
    ("s_mov_b32 exec_lo, 1", &[0xbefe0081]),
    ("v_readfirstlane_b32 s6, v2", &[0x7e0c0502]),
    ("global_store_b8 v0, v2, s[2:3]", &[0xdc620000, 0x00020200]),
    ("global_load_b32 v2, v1, s[2:3] offset:2", &[0xdc520002, 0x02020001]),
    ("s_mov_b32 s6, 16", &[0xbe860090]),
    ("s_mov_b32 s6, -8", &[0xbe8600c8]),
    ("s_load_b32 s6, s[2:3], 0x10", &[0xf4000181, 0xf8000010]),
    ("s_load_b32 s4, s[2:3], s6 offset:0x8", &[0xf4000101, 0x0c000008]),
    ("s_load_b32 s4, s[2:3], s6 offset:-0x8", &[0xf4000101, 0x0c1ffff8]),
    ("v_mov_b32_e32 v2, s4", &[0x7e040204]),
    ("v_mov_b32_e32 v3, 1", &[0x7e060281]),
    ("global_load_b32 v2, v1, s[2:3] glc", &[0xdc524000, 0x02020001]),
    ("global_load_b32 v2, v1, s[2:3] slc", &[0xdc528000, 0x02020001]),
    ("global_load_b32 v2, v1, s[2:3] offset:2 glc", &[0xdc524002, 0x02020001]),
    ("global_atomic_add_u32 v2, v1, v3, s[2:3] glc", &[0xdcd64000, 0x02020301]),
    ("v_lshlrev_b32_e32 v2, 2, v2", &[0x30040482]),
    ("global_store_b32 v2, v0, s[2:3] offset:4", &[0xdc6a0004, 0x00020002]),
    ("v_mov_b32_e32 v2, 0", &[0x7e040280]),
    ("v_writelane_b32 v2, 7, 33", &[0xd7610002, 0x00014287]),
    ("v_writelane_b32 v2, s6, s6", &[0xd7610002, 0x00000c06]),
];

const GFX12: &[(&str, &[u32])] = &[
    ("s_load_b64 s[2:3], s[0:1], 0x0", &[0xf4002080, 0xf8000000]),
    ("s_wait_kmcnt 0x0", &[0xbfc70000]),
    ("s_wait_loadcnt 0x1", &[0xbfc00001]),
    ("s_wait_loadcnt 0x0", &[0xbfc00000]),
    ("global_load_b32 v2, v1, s[2:3]", &[0xee050002, 0x00000002, 0x00000001]),
    ("global_store_b32 v1, v2, s[2:3]", &[0xee068002, 0x01000000, 0x00000001]),
    ("v_lshlrev_b32_e32 v1, 2, v0", &[0x30020082]),
    ("ds_bpermute_b32 v3, v1, v2", &[0xdacc0000, 0x03000201]),
    ("s_wait_dscnt 0x0", &[0xbfc60000]),
    ("s_endpgm", &[0xbfb00000]),
    ("v_mov_b32_e32 v2, v3", &[0x7e040303]),
    ("s_mov_b32 s6, 16", &[0xbe860090]),
    ("s_load_b32 s4, s[2:3], s6 offset:0x8", &[0xf4000101, 0x0c000008]),
    ("s_load_b32 s4, s[2:3], s6 offset:-0x8", &[0xf4000101, 0x0cfffff8]),
    ("v_mov_b32_e32 v2, s4", &[0x7e040204]),
    ("v_mov_b32_e32 v1, 0", &[0x7e020280]),
    ("v_mov_b32_e32 v2, 0", &[0x7e040280]),
    ("v_writelane_b32 v2, 7, 33", &[0xd7610002, 0x00014287]),
    ("v_writelane_b32 v2, s6, s6", &[0xd7610002, 0x00000c06]),
    ("v_mov_b32_e32 v3, 1", &[0x7e060281]),
    ("global_load_b32 v2, v1, s[2:3] scope:SCOPE_SYS", &[0xee050002, 0x000c0002, 0x00000001]),
    ("global_load_b32 v2, v1, s[2:3] scope:SCOPE_DEV", &[0xee050002, 0x00080002, 0x00000001]),
    (
        "global_atomic_add_u32 v2, v1, v3, s[2:3] th:TH_ATOMIC_RETURN scope:SCOPE_SYS",
        &[0xee0d4002, 0x019c0002, 0x00000001],
    ),
];

const GFX9: &[(&str, &[u32])] = &[
    ("s_load_dwordx2 s[2:3], s[4:5], 0x0", &[0xc0060082, 0x00000000]),
    ("s_waitcnt lgkmcnt(0)", &[0xbf8cc07f]),
    ("v_lshlrev_b32_e32 v1, 2, v0", &[0x24020082]),
    ("global_load_dword v2, v1, s[2:3]", &[0xdc508000, 0x02020001]),
    ("global_store_dword v1, v1, s[2:3]", &[0xdc708000, 0x00020101]),
    ("s_waitcnt vmcnt(1)", &[0xbf8c0f71]),
    ("s_waitcnt vmcnt(0)", &[0xbf8c0f70]),
    ("v_mov_b32_e32 v3, v2", &[0x7e060302]),
    ("s_endpgm", &[0xbf810000]),
    ("ds_bpermute_b32 v3, v1, v2", &[0xd87e0000, 0x03000201]),
    ("s_load_dword s6, s[4:5], 0x8", &[0xc0020182, 0x00000008]),
    ("s_waitcnt lgkmcnt(1)", &[0xbf8cc17f]),
    ("v_mov_b32_e32 v4, v3", &[0x7e080303]),
    ("s_cbranch_execz 1", &[0xbf880001]),
    ("s_mov_b32 s6, 16", &[0xbe860090]),
    ("s_load_dword s7, s[2:3], s6 offset:0x8", &[0xc00241c1, 0x0c000008]),
    ("v_mov_b32_e32 v2, s7", &[0x7e040207]),
    ("global_store_dword v1, v2, s[2:3]", &[0xdc708000, 0x00020201]),
    ("v_mov_b32_e32 v1, 0", &[0x7e020280]),
    ("v_mov_b32_e32 v3, 1", &[0x7e060281]),
    ("global_load_dword v2, v1, s[2:3] glc", &[0xdc518000, 0x02020001]),
    ("global_load_dword v2, v1, s[2:3] slc", &[0xdc528000, 0x02020001]),
    ("global_atomic_add v2, v1, v3, s[2:3] glc", &[0xdd098000, 0x02020301]),
];

pub fn words_of(target: Target) -> &'static [(&'static str, &'static [u32])] {
    match target.name {
        "gfx90a" => GFX9,
        "gfx11-generic" => GFX11,
        _ => GFX12,
    }
}

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
