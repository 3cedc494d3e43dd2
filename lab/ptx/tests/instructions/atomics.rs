//! Atomics, and the order in which lanes and warps arrive.

use bowstring_ptxi::{Launch, Module};

use crate::run::{Words, kernel, run};

#[test]
fn atomics_add_up() {
    let words = run(
        "red.relaxed.gpu.global.add.u64 [%base], 2; atom.global.add.u32 %r1, [%base+8], %lane;
        red.relaxed.gpu.global.min.u32 [%base+16], %lane; mov.u32 %r2, 1; shl.b32 %r2, %r2, %lane;
        red.global.or.b32 [%base+24], %r2;",
        &[0, 0, 7, 0],
        Some(3),
    )
    .unwrap();
    assert_eq!(words, [64, 496, 0, 0xffff_ffff]);
}

#[test]
fn atomics_return_what_was_there() {
    // Each lane's ticket is the sum of one for each lane before it, and its compare-and-swap succeeds once.
    let body = "atom.relaxed.gpu.global.add.u64 %rd1, [%base], 1;
        cvt.u64.u32 %rd2, %lane; add.s64 %rd2, %rd2, 100;
        atom.relaxed.gpu.global.cas.b64 %rd3, [%base+8], 0, %rd2;
        atom.relaxed.gpu.global.min.u32 %r1, [%base+16], %lane;
        ld.relaxed.gpu.global.b64 %rd4, [%base+8];
        mul.lo.s64 %rd5, %rd1, 32; add.s64 %rd5, %rd5, %base;
        st.global.v2.b64 [%rd5+32], {%rd2, %rd3}; st.global.b64 [%rd5+48], %rd4; st.global.b32 [%rd5+56], %r1;";
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..8 {
        let mut start = vec![0; 4 + 4 * 32];
        start[2] = 77;
        let words = run(body, &start, Some(seed)).unwrap();
        let (winner, rows) = (words[1], &words[4..]);
        assert_eq!((words[0], words[2]), (32, 0));
        assert!((100..132).contains(&winner));
        let mut lanes: Vec<u64> = rows.chunks(4).map(|row| row[0]).collect();
        firsts.insert(lanes[0]);
        lanes.sort_unstable();
        assert!(lanes.into_iter().eq(100..132), "each ticket is one lane's");
        for row in rows.chunks(4) {
            assert_eq!(row[1], if row[0] == winner { 0 } else { winner });
            assert_eq!(row[2], winner);
        }
        assert_eq!(rows.chunks(4).filter(|row| row[3] == 77).count(), 1, "one lane found the first minimum");
    }
    assert!(firsts.len() > 1, "lanes arrive in different orders");
}

#[test]
fn warps_run_in_a_random_order() {
    let body = "mov.u32 %r1, %ctaid.x; cvt.u64.u32 %rd1, %r1; setp.ne.u32 %p1, %lane, 0; @%p1 bra $end;
        atom.relaxed.gpu.global.add.u64 %rd2, [%base], 1; shl.b64 %rd2, %rd2, 3; add.s64 %rd2, %rd2, %base;
        st.global.b64 [%rd2+8], %rd1; $end:";
    let module = Module::parse(&kernel(body)).unwrap();
    let order = |seed| {
        let mut memory = Words::new(&[0; 9]);
        let params = memory.start.to_le_bytes();
        let (blocks, block_size, races) = (8, 32, true);
        let launch = Launch { module: &module, entry: "k", params: &params, blocks, block_size, seed, races };
        launch.run(&mut memory).unwrap();
        memory.words()[1..].to_vec()
    };
    assert!(order(None).into_iter().eq(0..8));
    assert_ne!(order(Some(1)), order(Some(2)));
    let mut all = order(Some(3));
    all.sort_unstable();
    assert!(all.into_iter().eq(0..8));
}
