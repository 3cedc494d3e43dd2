//! Lanes and waves that meet at an element: atomics, and the loads beside them.

use bowstring_amdi::Target;

use crate::{EARLY, fails, piece, run_as, without};

#[test]
fn the_first_look_of_an_update_is_no_race() {
    let target = Target::named("gfx11-generic").unwrap();
    let lines = [
        "s_load_b64 s[2:3], s[0:1], null",
        "v_mov_b32_e32 v1, 0",
        "s_waitcnt lgkmcnt(0)",
        "global_load_b32 v2, v1, s[2:3]",
        "s_waitcnt vmcnt(0)",
        "global_atomic_cmpswap_b32 v2, v1, v[2:3], s[2:3] glc",
        "s_endpgm",
    ];
    run_as(target, &lines, &mut piece(64), 64, Some(3)).unwrap();
    // A plain load of the same address without a following update.
    let mut apart = lines.to_vec();
    apart.splice(5..6, ["v_mov_b32_e32 v2, 1", "global_atomic_add_u32 v1, v2, s[2:3]"]);
    let error = run_as(target, &apart, &mut piece(64), 64, Some(3)).unwrap_err();
    assert!(error.reason.contains("a race at 0x10000"), "{error}");
}

#[test]
fn only_a_load_with_an_atomic_ones_cache_bits_is_no_race_beside_updates() {
    let gfx9 = [
        "s_load_dwordx2 s[2:3], s[4:5], 0x0",
        "v_mov_b32_e32 v1, 0",
        "v_mov_b32_e32 v3, 1",
        "s_waitcnt lgkmcnt(0)",
        "global_load_dword v2, v1, s[2:3] glc",
        "s_waitcnt vmcnt(0)",
        "global_atomic_add v2, v1, v3, s[2:3] glc",
        "s_endpgm",
    ];
    let gfx11 = [
        "s_load_b64 s[2:3], s[0:1], null",
        "v_mov_b32_e32 v1, 0",
        "v_mov_b32_e32 v3, 1",
        "s_waitcnt lgkmcnt(0)",
        "global_load_b32 v2, v1, s[2:3] glc",
        "s_waitcnt vmcnt(0)",
        "global_atomic_add_u32 v2, v1, v3, s[2:3] glc",
        "s_endpgm",
    ];
    let gfx12 = [
        "s_load_b64 s[2:3], s[0:1], 0x0",
        "v_mov_b32_e32 v1, 0",
        "v_mov_b32_e32 v3, 1",
        "s_wait_kmcnt 0x0",
        "global_load_b32 v2, v1, s[2:3] scope:SCOPE_SYS",
        "s_wait_loadcnt 0x0",
        "global_atomic_add_u32 v2, v1, v3, s[2:3] th:TH_ATOMIC_RETURN scope:SCOPE_SYS",
        "s_endpgm",
    ];
    for (target, lines, plain) in [
        ("gfx90a", gfx9, ["global_load_dword v2, v1, s[2:3]", "global_load_dword v2, v1, s[2:3] slc"]),
        ("gfx11-generic", gfx11, ["global_load_b32 v2, v1, s[2:3]", "global_load_b32 v2, v1, s[2:3] slc"]),
        (
            "gfx12-generic",
            gfx12,
            ["global_load_b32 v2, v1, s[2:3]", "global_load_b32 v2, v1, s[2:3] scope:SCOPE_DEV"],
        ),
    ] {
        let target = Target::named(target).unwrap();
        let run = |look: &str| {
            let mut lines = lines;
            lines[4] = look;
            let mut memory = piece(64);
            run_as(target, &lines, &mut memory, 256, Some(3)).map(|_| memory.word(0))
        };
        assert_eq!(run(lines[4]), Ok(256));
        for look in plain {
            let error = run(look).unwrap_err();
            assert!(error.reason.contains("a race at 0x10000"), "{look}: {error}");
        }
    }
    // Atomic looks must be aligned, which others need not be.
    let mut odd = gfx11;
    odd[4] = "global_load_b32 v2, v1, s[2:3] offset:2 glc";
    fails("gfx11-generic", &odd, "4 bytes at 0x10002 are misaligned");
}

#[test]
fn each_lane_has_a_ticket_of_its_own() {
    let target = Target::named("gfx11-generic").unwrap();
    let lines = [
        "s_load_b64 s[2:3], s[0:1], null",
        "v_mov_b32_e32 v1, 0",
        "v_mov_b32_e32 v3, 1",
        "s_waitcnt lgkmcnt(0)",
        "global_atomic_add_u32 v2, v1, v3, s[2:3] glc",
        "s_waitcnt vmcnt(0)",
        "v_lshlrev_b32_e32 v2, 2, v2",
        "global_store_b32 v2, v0, s[2:3] offset:4",
        "s_endpgm",
    ];
    let order = |seed| {
        let mut memory = piece(257);
        run_as(target, &lines, &mut memory, 256, Some(seed)).unwrap();
        (1..257).map(|i| memory.word(i)).collect::<Vec<_>>()
    };
    assert_ne!(order(1), order(2));
    let mut all = order(3);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..256));
    fails("gfx11-generic", &without(&lines, 5), &format!("v2 {EARLY}"));
}
