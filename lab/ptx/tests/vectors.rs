//! Tests against independent results: inputs and outputs that ZLUDA's tests (`ptx/src/test/spirv_run` in
//! vosen/ZLUDA) record for single instructions. ZLUDA runs them through NVIDIA's own driver as well as
//! through its compiler, so they show what hardware does. The numbers come from all tests whose instruction
//! is in our subset; the kernels around them are our own.

use bowstring_ptxi::{Launch, Memory, Module};

struct Bytes(Vec<u8>);

const START: u64 = 0x1000;

impl Memory for Bytes {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        let at = (address - START) as usize;
        into.copy_from_slice(self.0.get(at..at + into.len()).ok_or("outside")?);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        let at = (address - START) as usize;
        self.0.get_mut(at..at + from.len()).ok_or("outside")?.copy_from_slice(from);
        Ok(())
    }
}

/// The words that a body stores at `%out`. `%in` is the address of its inputs, `%mine` that of the lane's own
/// 32-bit word.
fn run(body: &str, inputs: &[u8], outputs: usize) -> Vec<u8> {
    let text = format!(
        ".version 7.4\n.target sm_75\n.address_size 64\n.visible .entry k(\n.param .u64 p\n)\n{{
        .reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<16>;\n.reg .b64 %d<9>, %in, %out, %mine;\n.reg .b32 %lane;
        ld.param.b64 %in, [p]; add.s64 %out, %in, 64;
        mov.u32 %lane, %laneid; mul.wide.u32 %mine, %lane, 4; add.s64 %mine, %mine, %out;
        {body}
        $end: ret;\n}}"
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{body}: {error}"));
    let mut memory = Bytes(vec![0; 64 + outputs]);
    memory.0[..inputs.len()].copy_from_slice(inputs);
    let launch = Launch {
        module: &module,
        entry: "k",
        params: &START.to_le_bytes(),
        blocks: 1,
        block_size: 32,
        seed: Some(1),
        races: true,
    };
    launch.run(&mut memory).unwrap_or_else(|error| panic!("{body}: {error}"));
    memory.0.split_off(64)
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn f(x: f32) -> u32 {
    x.to_bits()
}

/// An instruction on consecutive 32-bit words, and the word that it returns.
#[test]
fn instructions_of_32_bits() {
    for (instruction, sources, expected) in [
        ("abs.s32", &[i32::MIN as u32][..], i32::MIN as u32),
        ("and.b32", &[6, 3], 2),
        ("bfe.u32", &[0b1111_1000_1100_0001_0010_0010_1010_0000, 16, 8], 0b1100_0001),
        ("bfi.b32", &[0b10, 0b101, 0, 2], 0b110),
        ("brev.b32", &[0b1100_0111_0101_1100_1010_1110_1111_1011], 0b1101_1111_0111_0101_0011_1010_1110_0011),
        ("clz.b32", &[0b101_0010_1101_0001_0011_1010_1011], 5),
        ("copysign.f32", &[0x0bda_2a2c, 0xe31a_8fd7], 0x631a_8fd7),
        ("cvt.rni.f32.f32", &[f(9.5)], f(10.0)),
        ("cvt.rni.f32.f32", &[f(10.5)], f(10.0)),
        ("cvt.rzi.f32.f32", &[f(-13.8)], f(-13.0)),
        ("cvt.rzi.f32.f32", &[f(12.9)], f(12.0)),
        ("cvt.rpi.s32.f32", &[f(-13.8)], -13i32 as u32),
        ("cvt.rpi.s32.f32", &[f(12.9)], 13),
        ("cvt.rni.u16.f32", &[0x477f_ff80], 65_535),
        ("cvt.s16.s8", &[0x1392_31c2], 0xffff_ffc2),
        ("cvt.s32.s16", &[0xffff], !0),
        ("cvt.sat.u32.s32", &[!0], 0),
        ("div.rn.f32", &[0x16a2_028d, 0x5e89_f6ae], 0x26),
        ("fma.rn.f32", &[f(2.0), f(3.0), f(5.0)], f(11.0)),
        ("mad.lo.s32", &[2, 3, 4], 10),
        ("max.s32", &[555, 444], 555),
        ("min.s32", &[555, 444], 444),
        ("mul.rn.f32", &[0x8040_0000, 0x3f00_0000], 0x8020_0000),
        ("neg.s32", &[181], -181i32 as u32),
        ("popc.b32", &[0b1011_1100_1001_0010_0100_1001_1000_1010], 14),
        ("prmt.b32", &[0x70c5_07d6, 0x6fbd_4b5c, 30_212], 0x6fbd_d65c),
        ("prmt.b32", &[0x0100_fe80, 0, 0x0a08], 0x8000_80ff),
        ("rcp.rn.f32", &[f(2.0)], f(0.5)),
        ("rem.s32", &[21_692, 13], 8),
        ("shf.l.clamp.b32", &[0x1234_5678, 0x9abc_def0, 44], 0x1234_5678),
        ("shf.l.wrap.b32", &[0x1234_5678, 0x9abc_def0, 12], 0xcdef_0123),
        ("shf.l.wrap.b32", &[0x1234_5678, 0x9abc_def0, 44], 0xcdef_0123),
        ("shf.r.clamp.b32", &[0x1234_5678, 0x9abc_def0, 44], 0x9abc_def0),
        ("shf.r.wrap.b32", &[0x1234_5678, 0x9abc_def0, 12], 0xef01_2345),
        ("shf.r.wrap.b32", &[0x1234_5678, 0x9abc_def0, 44], 0xef01_2345),
        ("shr.s32", &[-2i32 as u32, 1], !0),
        ("sqrt.rn.f32", &[f(0.25)], f(0.5)),
        ("xor.b32", &[0x521a_400d, 0xe69b_0c23], 0xb481_4c2e),
    ] {
        let loads: String =
            (0..sources.len()).map(|i| format!("ld.global.b32 %r{}, [%in+{}]; ", i + 1, 4 * i)).collect();
        let operands: Vec<String> = (1..=sources.len()).map(|i| format!("%r{i}")).collect();
        let body = format!(
            "{loads} {instruction} %r0, {}; setp.ne.u32 %p0, %lane, 0; @%p0 bra $end; st.global.b32 [%out], %r0;",
            operands.join(", ")
        );
        assert_eq!(run(&body, &bytes(sources), 4), bytes(&[expected]), "{instruction} {sources:x?}");
    }
}

#[test]
fn instructions_of_other_widths() {
    let one = |body: &str, inputs: &[u8]| {
        let body = format!("setp.ne.u32 %p0, %lane, 0; @%p0 bra $end; {body}");
        let out = run(&body, inputs, 8);
        u64::from_le_bytes(out.try_into().unwrap())
    };
    let load = "ld.global.b64 %d1, [%in]; ld.global.b64 %d2, [%in+8]; ld.global.b32 %r1, [%in]; ld.global.b32 %r2, [%in+4];";
    let of = |body: &str, inputs: [u64; 2]| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
        one(&format!("{load} {body} st.global.b64 [%out], %d0;"), &inputs)
    };
    assert_eq!(of("add.u64 %d0, %d1, 1;", [1, 0]), 2);
    assert_eq!(of("mul.lo.u64 %d0, %d1, 2;", [1, 0]), 2);
    assert_eq!(of("mul.hi.u64 %d0, %d1, 2;", [u64::MAX, 0]), 1);
    assert_eq!(of("not.b64 %d0, %d1;", [0, 0]), u64::MAX);
    assert_eq!(of("or.b64 %d0, %d1, %d2;", [1, 2]), 3);
    assert_eq!(of("shl.b64 %d0, %d1, 2;", [11, 0]), 44);
    assert_eq!(of("sub.s64 %d0, %d1, 1;", [2, 0]), 1);
    assert_eq!(of("cvt.s64.s32 %d0, %r1;", [0xffff_ffff, 0]), u64::MAX);
    assert_eq!(of("cvt.f64.f32 %d0, %r1;", [f(0.125).into(), 0]), 0.125f64.to_bits());
    assert_eq!(of("mul.wide.s32 %d0, %r1, %r2;", [0x0100_0000_0100_0000, 0]), 0x1_0000_0000_0000);
    // -1 * 3 + (4 + 5 * 2^32)
    let wide = [0x3_ffff_ffff, 4 | 5 << 32];
    assert_eq!(of("mad.wide.s32 %d0, %r1, %r2, %d2;", wide), 21_474_836_481);
    // A shift by more than the width leaves only the sign.
    let shifted = "ld.global.s16 %h1, [%in]; shr.s16 %h0, %h1, 16; cvt.s64.s16 %d0, %h0;";
    assert_eq!(of(shifted, [0x8000, 0]), u64::MAX);
    // The minimum of NaN and a number is the number.
    let least =
        "ld.global.b16 %h1, [%in]; ld.global.b16 %h2, [%in+2]; min.f16 %h0, %h1, %h2; cvt.u64.u16 %d0, %h0;";
    let (nan, number) = (half::f16::NAN.to_bits(), half::f16::from_f32(123.0).to_bits());
    assert_eq!(of(least, [u64::from(nan) | u64::from(number) << 16, 0]), number.into());
}

#[test]
fn carries() {
    let one = |body: &str, inputs: &[u32], outputs: usize| {
        let body = format!("setp.ne.u32 %p0, %lane, 0; @%p0 bra $end; {body}");
        run(&body, &bytes(inputs), 4 * outputs)
    };
    let chain = |name: &str| {
        let loads: String = (0..8).map(|i| format!("ld.global.b32 %r{i}, [%in+{}]; ", 4 * i)).collect();
        format!(
            "{loads} {name}.cc.u32 %r0, %r0, %r4; {name}c.cc.u32 %r1, %r1, %r5; {name}c.cc.u32 %r2, %r2, %r6;
            {name}c.u32 %r3, %r3, %r7; st.global.b32 [%out], %r0; st.global.b32 [%out+4], %r1;
            st.global.b32 [%out+8], %r2; st.global.b32 [%out+12], %r3;"
        )
    };
    assert_eq!(one(&chain("add"), &[!0, !0, !0, 0, 1, 0, 0, 0], 4), bytes(&[0, 0, 0, 1]));
    assert_eq!(one(&chain("sub"), &[0, 0, 0, 1, 1, 0, 0, 0], 4), bytes(&[!0, !0, !0, 0]));
    // The flag that an instruction leaves for an addition: 1 after a sum that carries, 0 after a difference
    // that borrows.
    let flag = |name: &str| {
        format!(
            "ld.global.b32 %r1, [%in]; ld.global.b32 %r2, [%in+4]; add.cc.u32 %r3, -1, 1; {name}.cc.s32 %r0, %r1, %r2;
            addc.u32 %r4, 0, 0; st.global.b32 [%out], %r0; st.global.b32 [%out+4], %r4;"
        )
    };
    assert_eq!(one(&flag("addc"), &[0x62d0_b1fd, 0xb632_d4df], 2), bytes(&[0x1903_86dd, 1]));
    assert_eq!(one(&flag("sub"), &[0x627a_df75, 0x864c_cef5], 2), bytes(&[3_694_006_400, 0]));
}

#[test]
fn comparisons_with_nan() {
    let nan = f(f32::NAN);
    for (how, pair, expected) in [
        ("nan", [f(0.5), nan], 1),
        ("nan", [nan, f(0.5)], 1),
        ("nan", [nan, nan], 1),
        ("nan", [f(0.5), f(0.5)], 0),
        ("num", [f(0.5), nan], 0),
        ("num", [nan, f(0.5)], 0),
        ("num", [nan, nan], 0),
        ("num", [f(0.5), f(0.5)], 1),
        ("gt", [nan, f(1.0)], 0),
        ("leu", [f(1.0), nan], 1),
    ] {
        let body = format!(
            "ld.global.b32 %r1, [%in]; ld.global.b32 %r2, [%in+4]; setp.{how}.f32 %p1, %r1, %r2; selp.b32 %r0, 1, 0, %p1;
            setp.ne.u32 %p0, %lane, 0; @%p0 bra $end; st.global.b32 [%out], %r0;"
        );
        assert_eq!(run(&body, &bytes(&pair), 4), bytes(&[expected]), "{how} {pair:x?}");
    }
}

#[test]
fn shuffles_and_votes() {
    let lanes = |body: &str| {
        let out = run(&format!("{body} st.global.b32 [%mine], %r0;"), &[], 128);
        out.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect::<Vec<u32>>()
    };
    // The lane that each lane reads from, plus a thousand if that is out of range.
    let taken = |how: &str, clamp: u32| {
        let by = if how == "idx" { 12 } else { 3 };
        lanes(&format!(
            "shfl.sync.{how}.b32 %r0|%p1, %lane, {by}, {clamp}, -1; @!%p1 add.u32 %r0, %r0, 1000;"
        ))
    };
    let expect = |each: fn(u32) -> u32| (0..32).map(each).collect::<Vec<u32>>();
    assert_eq!(taken("up", 0), expect(|lane| lane.checked_sub(3).unwrap_or(lane + 1000)));
    assert_eq!(taken("down", 31), expect(|lane| if lane < 29 { lane + 3 } else { lane + 1000 }));
    assert_eq!(taken("bfly", 31), expect(|lane| lane ^ 3));
    assert_eq!(taken("idx", 31), expect(|_| 12));
    // The four shuffles with segments of 2, 4, 8 and 16 lanes, added up.
    let segments = lanes(
        "shfl.sync.up.b32 %r0, %lane, 3, 7680, -1; shfl.sync.down.b32 %r1, %lane, 3, 7199, -1; add.u32 %r0, %r0, %r1;
        shfl.sync.bfly.b32 %r1, %lane, 3, 6175, -1; add.u32 %r0, %r0, %r1;
        shfl.sync.idx.b32 %r1, %lane, 3, 4127, -1; add.u32 %r0, %r0, %r1;",
    );
    let recorded = [
        9, 7, 8, 9, 21, 19, 20, 21, 33, 31, 32, 33, 45, 43, 44, 45, 73, 71, 72, 73, 85, 83, 84, 85, 97, 95,
        96, 97, 109, 107, 108, 109,
    ];
    assert_eq!(segments, recorded);
    // All lanes but the first; then no lane but the first.
    let vote = |test: &str, how: &str| {
        lanes(&format!(
            "setp.{test}.u32 %p1, %lane, 0; vote.sync.{how}.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;"
        ))
    };
    assert_eq!(vote("eq", "any"), [1; 32]);
    assert_eq!(vote("ne", "all"), [0; 32]);
    assert_eq!(vote("ge", "all"), [1; 32]);
}
