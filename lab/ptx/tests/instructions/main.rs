//! Tests each instruction of the subset on critical values, and the programs that the interpreter must
//! refuse.

mod atomics;
mod run;

use std::collections::BTreeMap;

use bowstring_ptxi::{Launch, Module};
use run::{HEAD, Words, kernel, result, run};

fn f(x: f32) -> u64 {
    x.to_bits().into()
}

fn d(x: f64) -> u64 {
    x.to_bits()
}

#[test]
fn integers() {
    let minus = |n: u64| n.wrapping_neg();
    let low = |n: u64| n & 0xffff_ffff;
    for (instruction, sources, expected) in [
        ("add.s32", &[0xffff_ffff, 1][..], 0),
        ("sub.s64", &[0, 1], !0),
        ("mul.lo.s32", &[0x1_0001, 0x1_0001], 0x2_0001),
        ("mul.hi.u64", &[!0, !0], !1),
        ("mul.hi.s64", &[!0, !0], 0),
        ("mul.hi.s32", &[low(minus(2)), 3], low(minus(1))),
        ("mul.wide.u32", &[0xffff_ffff, 0xffff_ffff], 0xffff_fffe_0000_0001),
        ("mul.wide.s32", &[0xffff_ffff, 5], minus(5)),
        ("mad.lo.s64", &[3, 5, 7], 22),
        ("mad.wide.u32", &[0xffff_ffff, 2, 2], 0x2_0000_0000),
        ("div.s32", &[low(minus(7)), 2], low(minus(3))),
        ("div.u64", &[!0, 0], !0),
        ("rem.s32", &[low(minus(7)), 2], low(minus(1))),
        ("rem.u32", &[7, 4], 3),
        ("min.s32", &[0xffff_ffff, 1], 0xffff_ffff),
        ("min.u32", &[0xffff_ffff, 1], 1),
        ("max.s64", &[minus(5), 2], 2),
        ("abs.s32", &[low(minus(9))], 9),
        ("neg.s64", &[9], minus(9)),
        ("not.b32", &[0xf0f0_f0f0], 0x0f0f_0f0f),
        ("shl.b32", &[1, 31], 1 << 31),
        ("shl.b32", &[1, 32], 0),
        ("shl.b64", &[1, 63], 1 << 63),
        ("shr.u32", &[0x8000_0000, 31], 1),
        ("shr.u64", &[1 << 63, 64], 0),
        ("shr.s32", &[0x8000_0000, 99], 0xffff_ffff),
        ("shf.r.wrap.b32", &[0x89ab_cdef, 0x0123_4567, 36], 0x789a_bcde),
        ("shf.r.clamp.b32", &[0x89ab_cdef, 0x0123_4567, 36], 0x0123_4567),
        ("shf.l.wrap.b32", &[0x89ab_cdef, 0x0123_4567, 8], 0x2345_6789),
        ("bfe.u32", &[0x0000_0ff0, 4, 4], 0xf),
        ("bfe.s32", &[0x0000_0ff0, 4, 4], 0xffff_ffff),
        ("bfi.b32", &[0xf, 0, 8, 4], 0xf00),
        ("brev.b32", &[1], 1 << 31),
        ("clz.b32", &[1], 31),
        ("clz.b64", &[0], 64),
        ("popc.b32", &[0xffff_ffff_0000_00ff], 8),
        ("popc.b64", &[!0], 64),
        ("prmt.b32", &[0x3322_1100, 0x7766_5544, 0x7340], 0x7733_4400),
        ("prmt.b32", &[0x0000_0080, 0, 0x8888], 0xffff_ffff),
        ("prmt.b32.f4e", &[0x3322_1100, 0x7766_5544, 0], 0x3322_1100),
        ("prmt.b32.f4e", &[0x3322_1100, 0x7766_5544, 7], 0x6655_4433),
        ("selp.b64", &[7, 8, 0], 8),
        ("selp.b64", &[7, 8, 1], 7),
        ("cvt.u64.u32", &[0xffff_ffff], 0xffff_ffff),
        ("cvt.s64.s32", &[0xffff_ffff], !0),
        // A register wider than the result holds it sign-extended.
        ("cvt.s32.s8", &[0x80], minus(128)),
        ("cvt.s8.s32", &[0x180], minus(128)),
        ("cvt.s16.u64", &[0x1_8000], minus(1 << 15)),
        ("cvt.sat.s8.s64", &[minus(999)], minus(128)),
        ("cvt.u32.u64", &[0x1_2345_6789], 0x2345_6789),
        ("cvt.u16.u32", &[0x1_2345], 0x2345),
        ("cvt.sat.u8.s32", &[low(minus(4))], 0),
        ("setp.lt.s32", &[0xffff_ffff, 0], 1),
        ("setp.lt.u32", &[0xffff_ffff, 0], 0),
        ("setp.ge.s64", &[1 << 63, 0], 0),
        ("setp.hi.u64", &[1 << 63, 0], 1),
    ] {
        assert_eq!(result(instruction, sources), expected, "{instruction} {sources:x?}");
    }
}

#[test]
fn floats() {
    let nan = f(f32::NAN);
    for (instruction, sources, expected) in [
        ("add.rn.f32", &[f(1.0), f(f32::EPSILON / 2.0)][..], f(1.0)),
        ("mul.rn.f64", &[d(0.1), d(3.0)], d(0.1 * 3.0)),
        ("div.rn.f32", &[f(1.0), f(3.0)], f(1.0 / 3.0)),
        ("sqrt.rn.f64", &[d(2.0)], d(2f64.sqrt())),
        ("fma.rn.f64", &[d(0.1), d(10.0), d(-1.0)], d(0.1f64.mul_add(10.0, -1.0))),
        ("min.f32", &[nan, f(1.0)], f(1.0)),
        ("min.f64", &[d(0.0), d(-0.0)], d(-0.0)),
        ("max.f64", &[d(-0.0), d(0.0)], d(0.0)),
        ("abs.f64", &[d(-1.5)], d(1.5)),
        ("neg.f32", &[f(0.0)], f(-0.0)),
        ("copysign.f64", &[d(-0.0), d(3.0)], d(-3.0)),
        ("cvt.rzi.s32.f64", &[d(-1.9)], !0),
        ("cvt.rzi.s64.f64", &[d(1e300)], i64::MAX as u64),
        ("cvt.rzi.u64.f64", &[d(-1.0)], 0),
        // NaN becomes 0 if neither side has 64 bits, else the highest bit.
        ("cvt.rzi.s32.f32", &[nan], 0),
        ("cvt.rzi.u16.f32", &[nan], 0),
        ("cvt.rzi.s64.f32", &[nan], 1 << 63),
        ("cvt.rzi.u64.f32", &[nan], 1 << 63),
        ("cvt.rzi.u32.f64", &[d(f64::NAN)], 1 << 31),
        ("cvt.rzi.s32.f64", &[d(f64::NAN)], !0 << 31),
        ("cvt.rzi.u8.f64", &[d(f64::NAN)], 1 << 7),
        ("cvt.rn.f32.s64", &[u64::MAX - 1], f(-2.0)),
        ("cvt.rn.f32.u64", &[u64::MAX], f(18_446_744_073_709_551_616.0)),
        ("cvt.rn.f64.u64", &[(1 << 53) + 1], d(9_007_199_254_740_992.0)),
        ("cvt.rn.f32.f64", &[d(0.1)], f(0.1)),
        ("cvt.f64.f32", &[f(0.1)], d(0.1f32.into())),
        ("cvt.rn.f16.f32", &[f(65_519.0)], 0x7bff),
        ("cvt.rn.f16.f32", &[f(65_520.0)], 0x7c00),
        ("cvt.f32.f16", &[0x0001], f(2f32.powi(-24))),
        ("cvt.rni.f64.f64", &[d(2.5)], d(2.0)),
        ("cvt.rmi.f64.f64", &[d(-0.5)], d(-1.0)),
        ("cvt.rpi.f32.f32", &[f(0.2)], f(1.0)),
        ("setp.eq.f32", &[nan, nan], 0),
        ("setp.neu.f32", &[nan, nan], 1),
        ("setp.ne.f32", &[nan, nan], 0),
        ("setp.equ.f64", &[d(0.0), d(-0.0)], 1),
        ("setp.num.f64", &[d(f64::NAN), d(0.0)], 0),
        ("setp.nan.f64", &[d(f64::NAN), d(0.0)], 1),
    ] {
        assert_eq!(result(instruction, sources), expected, "{instruction} {sources:x?}");
    }
}

#[test]
fn carries_packs_and_vectors() {
    // The 128-bit sum and difference of words 0:1 and words 2:3.
    let sum = run(
        "setp.ne.u32 %p1, %lane, 0; @%p1 bra $end;
        ld.global.v2.b64 {%rd1, %rd2}, [%base]; ld.global.v2.u64 {%rd3, %rd4}, [%base+16];
        add.cc.s64 %rd5, %rd1, %rd3; addc.cc.s64 %rd6, %rd2, %rd4;
        st.global.v2.b64 [%base+32], {%rd5, %rd6};
        sub.cc.s64 %rd5, %rd1, %rd3; subc.cc.s64 %rd6, %rd2, %rd4;
        st.global.v2.b64 [%base+48], {%rd5, %rd6}; $end:",
        &[!0, 1, 1, 5, 0, 0, 0, 0],
        None,
    )
    .unwrap();
    assert_eq!(sum[4..6], [0, 7]);
    assert_eq!(sum[6..8], [!1, 4u64.wrapping_neg()]);

    let packed = run(
        "setp.ne.u32 %p1, %lane, 0; @%p1 bra $end;
        ld.global.b64 %rd1, [%base]; mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd2, {%r2, %r1};
        st.global.b64 [%base+8], %rd2;
        mov.b32 {_, %rs1}, %r1; cvt.u32.u16 %r3, %rs1; st.global.b32 [%base+16], %r3;
        ld.global.s8 %r4, [%base]; st.global.b32 [%base+24], %r4;
        ld.global.nc.L1::no_allocate.u16 %r5, [%base+2]; st.global.u8 [%base+32], %r5; $end:",
        &[0x1122_3344_5566_7788, 0, 0, 0, 0],
        None,
    )
    .unwrap();
    assert_eq!(packed[1..], [0x5566_7788_1122_3344, 0x5566, 0xffff_ff88, 0x66]);
}

/// Each lane writes a result to its own word; lanes run in order and in random orders.
fn in_lanes(body: &str) -> Vec<u64> {
    let results: Vec<_> = [None, Some(1), Some(99)]
        .into_iter()
        .map(|seed| run(&format!("{body} st.global.b64 [%me], %rd0;"), &[0; 32], seed).unwrap())
        .collect();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "the lanes' order matters: {body}");
    results[0].clone()
}

#[test]
fn collectives() {
    let odd = in_lanes(
        "and.b32 %r1, %lane, 1; setp.ne.b32 %p1, %r1, 0; vote.sync.ballot.b32 %r2, %p1, -1; cvt.u64.u32 %rd0, %r2;",
    );
    assert_eq!(odd, [0xaaaa_aaaa; 32]);
    let below = in_lanes(
        "shfl.sync.up.b32 %r1|%p1, %lane, 4, 0, -1; selp.b32 %r1, %r1, 99, %p1; cvt.u64.u32 %rd0, %r1;",
    );
    assert!((0..32).all(|l| below[l as usize] == if l < 4 { 99 } else { l - 4 }));
    let above = in_lanes("shfl.sync.down.b32 %r1, %lane, 1, 31, -1; cvt.u64.u32 %rd0, %r1;");
    assert!((0..32).all(|l| above[l as usize] == (l + 1).min(31)));
    let across = in_lanes("shfl.sync.bfly.b32 %r1, %lane, 5, 31, -1; cvt.u64.u32 %rd0, %r1;");
    assert!((0..32).all(|l| across[l as usize] == l ^ 5));
    let seven = in_lanes("shfl.sync.idx.b32 %r1, %lane, 7, 31, -1; cvt.u64.u32 %rd0, %r1;");
    assert_eq!(seven, [7; 32]);
}

#[test]
fn lanes_part_and_meet_again() {
    // Lane l counts to l in a loop of its own, then all vote.
    let counts = in_lanes(
        "mov.u32 %r1, 0; $loop: setp.ge.u32 %p1, %r1, %lane; @%p1 bra $out; add.s32 %r1, %r1, 1; bra $loop;
        $out: bar.warp.sync -1; setp.eq.u32 %p2, %r1, %lane; vote.sync.all.pred %p3, %p2, -1;
        selp.b64 %rd0, 1, 0, %p3;",
    );
    assert_eq!(counts, [1; 32]);
}

#[test]
fn constants_and_tables() {
    let text = kernel(
        "$table: .branchtargets $a, $b, $a, $b;
        brx.idx %lane, $table; $a: mov.b64 %rd0, 10; bra $out; $b: mov.b64 %rd0, 20;
        $out: mul.wide.u32 %rd1, %lane, 4; add.s64 %rd1, %rd1, tens; ld.global.nc.u32 %r1, [%rd1];
        cvt.u64.u32 %rd2, %r1; add.s64 %rd0, %rd0, %rd2; st.global.b64 [%me], %rd0;",
    )
    .replace(".visible", ".global .align 4 .u32 tens[4] = {1, 2, 3, 0x4};\n.visible");
    let module = Module::parse(&text).unwrap();
    assert_eq!(module.entries(), ["k"]);
    let mut memory = Words::new(&[0; 4]);
    let params = memory.start.to_le_bytes();
    // Lanes with an index beyond the table have no target; that must be an error, too.
    let launch = Launch {
        module: &module,
        entry: "k",
        params: &params,
        blocks: 1,
        block_size: 32,
        seed: None,
        races: true,
    };
    let error = launch.run(&mut memory).unwrap_err();
    assert!(error.reason.contains("past its table"), "{error}");
    let text = text.replace("brx.idx", "setp.gt.u32 %p1, %lane, 3; @%p1 ret; brx.idx");
    let module = Module::parse(&text).unwrap();
    Launch { module: &module, ..launch }.run(&mut memory).unwrap();
    assert_eq!(memory.words(), [11, 22, 13, 24]);
}

#[test]
fn what_must_not_happen_is_an_error() {
    let cases: BTreeMap<&str, (&str, &str)> = [
        ("outside", ("st.global.b64 [%me+8], %me;", "outside")),
        ("misaligned", ("ld.global.b64 %rd1, [%base+4];", "misaligned")),
        ("race of writes", ("st.global.b32 [%base], %lane;", "race")),
        ("race of a read", ("ld.global.b64 %rd1, [%base]; st.global.b64 [%me], %rd1;", "race")),
        ("race with an update", ("st.global.b64 [%me], 0; red.global.add.u64 [%base], 1;", "race")),
        (
            "race of a plain look with an exchange",
            ("ld.global.b64 %rd1, [%base]; atom.relaxed.gpu.global.cas.b64 %rd2, [%base], 0, 1;", "race"),
        ),
        (
            "race of an atomic look with a store",
            ("ld.relaxed.gpu.global.b64 %rd1, [%base]; st.global.b64 [%me], %rd1;", "race"),
        ),
        ("misaligned exchange", ("atom.relaxed.gpu.global.cas.b64 %rd2, [%base+4], 0, 1;", "misaligned")),
        ("endless", ("$loop: bra $loop;", "does not end")),
        ("trap", ("trap;", "trap")),
        ("some lanes never come", ("setp.gt.u32 %p1, %lane, 3; @%p1 ret; bar.warp.sync -1;", "have ended")),
        (
            "divergent collective",
            (
                "setp.gt.u32 %p1, %lane, 3; @%p1 bra $a; vote.sync.any.pred %p2, %p1, -1; bra $b;
                $a: vote.sync.any.pred %p2, %p1, -1; $b:",
                "never come",
            ),
        ),
        (
            "shuffle from outside",
            ("setp.gt.u32 %p1, %lane, 3; @%p1 ret; shfl.sync.idx.b32 %r1, %lane, 9, 31, 15;", "not in"),
        ),
    ]
    .into();
    for (name, (body, expected)) in cases {
        for seed in [None, Some(7)] {
            let error = run(body, &[0; 32], seed).expect_err(name);
            assert!(error.reason.contains(expected), "{name}: {error}");
        }
    }
}

#[test]
fn what_is_not_in_the_subset_does_not_parse() {
    for body in [
        "call foo;",
        "ld.shared.b32 %r1, [%r2];",
        "ld.b32 %r1, [%rd1];",
        "bar.sync 0;",
        "add.rz.f32 %r1, %r2, %r3;",
        "mov.u32 %r1, %clock;",
        "bra $nowhere;",
        "redux.sync.add.s32 %r1, %r2, -1;",
        "cvt.sat.f32.f32 %r1, %r2;",
        "add.sat.s32 %r1, %r2, %r3;",
        "sub.sat.s32 %r1, %r2, %r3;",
        "mad.hi.sat.s32 %r1, %r2, %r3, %r4;",
        "add.sat.f32 %r1, %r2, %r3;",
        "mul.rn.sat.f32 %r1, %r2, %r3;",
        "mul.rn.ftz.f32 %r1, %r2, %r3;",
        "fma.rn.sat.f32 %r1, %r2, %r3, %r4;",
        "abs.ftz.f32 %r1, %r2;",
        "ld.acquire.gpu.global.b32 %r1, [%rd1];",
        "ld.volatile.global.b32 %r1, [%rd1];",
        "ld.relaxed.sys.global.b32 %r1, [%rd1];",
        "ld.relaxed.global.b32 %r1, [%rd1];",
        "ld.relaxed.gpu.b32 %r1, [%rd1];",
        "ld.relaxed.gpu.global.v2.b32 {%r1, %r2}, [%rd1];",
        "atom.relaxed.sys.global.cas.b32 %r1, [%rd1], 0, 1;",
        "atom.acquire.gpu.global.cas.b32 %r1, [%rd1], 0, 1;",
        "st.release.gpu.global.b32 [%rd1], %r1;",
        "red.release.gpu.global.add.u32 [%rd1], 1;",
        "$twice: { $twice: bra $twice; }",
    ] {
        assert!(Module::parse(&kernel(body)).is_err(), "{body}");
    }
    for text in ["", HEAD, ".func f() { ret; }", ".visible .entry k() { "] {
        assert!(Module::parse(text).is_err() || Module::parse(text).unwrap().entries().is_empty(), "{text}");
    }
}

#[test]
fn what_ran_is_counted_by_lanes_and_by_what_they_ran_together() {
    let ran = |body: &str| {
        let module = Module::parse(&kernel(body)).unwrap();
        let mut memory = Words::new(&[0; 32]);
        let params = memory.start.to_le_bytes();
        let (blocks, block_size, seed, races) = (2, 64, None, false);
        let launch = Launch { module: &module, entry: "k", params: &params, blocks, block_size, seed, races };
        launch.run(&mut memory).unwrap()
    };
    let straight = ran("st.global.b64 [%me], %base;");
    assert_eq!((straight.lanes, straight.warps), (straight.warps * 32, 4 * 6));
    // One lane takes another path: its two instructions are issued for it alone, the others' for 31 lanes.
    let divergent = ran("setp.eq.u32 %p1, %lane, 3; @%p1 bra $one; mov.b64 %rd0, 1; bra $out;
        $one: mov.b64 %rd0, 2; mov.b64 %rd1, 2; $out: st.global.b64 [%me], %rd0;");
    assert_eq!(divergent.warps - straight.warps, 4 * 6);
    assert_eq!(divergent.lanes - straight.lanes, 4 * (2 * 32 + 2 * 31 + 2));
    // One lane's detour lies after the common code: the others wait for it at the point of return.
    let apart =
        ran("setp.eq.u32 %p1, %lane, 3; @%p1 bra $apart; $back: st.global.b64 [%me], %base; bra $out;
        $apart: mov.b64 %rd0, 2; bra $back; $out:");
    assert_eq!(apart.warps - straight.warps, 4 * 5);
    // Lanes that have left the loop wait for the others.
    let loops = ran("mov.b32 %r0, %lane; bra $next; $out: st.global.b64 [%me], %base; bra $end;
        $round: add.s32 %r0, %r0, -1; $next: setp.ne.u32 %p1, %r0, 0; @%p1 bra $round; bra $out; $end:");
    assert_eq!(loops.warps - straight.warps, 4 * (2 + 31 * 3 + 2 + 1 + 1));
}
