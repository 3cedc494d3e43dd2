//! Benches counting and showing nulls on every available device; on the CPU also arrow-rs, whose count is the
//! cost of making a null buffer, and whose `is_null` (of arrow-arith) is written out here. The other peers
//! are in `peers/`.

mod support;

use std::hint::black_box;

use arrow_array::{Array as _, BooleanArray};
use arrow_buffer::NullBuffer;
use bowstring::DeviceArray;
use bowstring::compute::{is_null, null_count};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{Spread, bits};
use support::{Moved, Scale, Where, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn counts(criterion: &mut Criterion) {
    Where::each(|place| {
        place.copy(criterion);
        // No cache holds this bitmap.
        let huge = match place.scale {
            Scale::Tiny => 20_000,
            Scale::Usual if place.on_gpu() => 1 << 31,
            _ if place.on_gpu() => 1 << 33,
            _ => 1 << 29,
        };
        for offset in [0, 3] {
            one(criterion, place, huge, offset, false);
            for rows in [place.large(), place.batch()] {
                one(criterion, place, rows, offset, true);
            }
        }
        if place.scale == Scale::Full {
            place.between().iter().for_each(|rows| one(criterion, place, *rows, 0, true));
        }
    });
}

fn one(criterion: &mut Criterion, place: &Where, rows: usize, offset: usize, also_show: bool) {
    let id = |operation: &str| format!("{operation}/{}/bits/{rows}/offset-{offset}/-/1", place.name);
    let (count_id, show_id) = (id("null_count"), id("is_null"));
    if !(wanted(&count_id) || also_show && wanted(&show_id)) {
        return;
    }
    let bits = bits(rows, 90.0, Spread::Uniform, offset, 2);
    // Only the validity is read, so the values may be the same bits.
    let theirs = BooleanArray::new(bits.clone(), Some(NullBuffer::new(bits.clone())));
    let Some(ours) = place.import_validity(&bits) else { return };
    let mut parts = ours.into_parts();
    parts.null_count = None;
    let ours = DeviceArray::try_new(parts).expect("the same array");
    let mut group = place.group(criterion, count_id, Moved::bytes(rows as u64 / 8));
    let nulls = theirs.null_count();
    group.ours(|| assert_eq!(null_count(black_box(&ours), &place.stream).wait(), Ok(nulls)));
    group.theirs("arrow-rs", || rows - black_box(&bits).count_set_bits());
    drop(group);
    if !also_show {
        return;
    }
    let mut group = place.group(criterion, show_id, Moved::bytes(rows as u64 / 4));
    group.ours(|| is_null(black_box(&ours), &place.stream).wait().expect("bits"));
    group.theirs("arrow-rs", || {
        let nulls = black_box(&theirs).logical_nulls().expect("there are some");
        BooleanArray::new(!nulls.inner(), None)
    });
}

criterion_group!(benches, counts);
criterion_main!(benches);
