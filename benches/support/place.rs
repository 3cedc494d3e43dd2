//! The devices for benches: the CPU always, and a GPU of each kind if there is one. Each has a stream, and on
//! a GPU a clock. The copy rate of a device is measured at first use, and other figures are compared with it.

use std::cell::{Cell, OnceCell};
use std::hint::black_box;
use std::time::Duration;

use arrow_array::{Array as ArrowArray, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use bowstring::exchange::from_arrow;
use bowstring::{Device, DeviceArray, Stream};
use criterion::Criterion;

use super::clock::Clock;
use super::{Group, Moved, Scale, notes, wanted};

/// A device that benches run on.
pub struct Where {
    /// The device's name in ids: `cpu`, `cuda` or `rocm`.
    pub name: &'static str,
    pub stream: Stream,
    pub scale: Scale,
    pub(super) clock: Option<Clock>,
    /// The rates of copies in bytes read and written in a second, each with the bytes of one copy.
    rates: OnceCell<Vec<(u64, f64)>>,
    /// Whether any bench has failed.
    pub(super) failed: Cell<bool>,
}

impl Where {
    /// Runs benches on every available device, and reports the unavailable ones.
    pub fn each(mut run: impl FnMut(&Where)) {
        let scale = Scale::of_this_run();
        let mut any_failed = false;
        for name in ["cpu", "cuda", "rocm"] {
            let device = match name {
                "cuda" => Device::cuda(0),
                "rocm" => Device::rocm(0),
                _ => Ok(Device::cpu()),
            };
            match device.and_then(|device| device.stream()) {
                Ok(stream) => {
                    notes::device(name, &stream.device().name());
                    let clock = Clock::new(&stream, scale == Scale::Tiny);
                    let (rates, failed) = (OnceCell::new(), Cell::new(false));
                    let place = Where { name, stream, scale, clock, rates, failed };
                    run(&place);
                    any_failed |= place.failed.get();
                }
                Err(error) => {
                    notes::not_run(name, &error.to_string());
                    println!("not run: {name} ({error})");
                }
            }
        }
        assert!(!any_failed, "see the benches above that FAILED");
    }

    pub fn on_gpu(&self) -> bool {
        self.clock.is_some()
    }

    /// The smallest number of bytes that memory transfers.
    pub fn sector(&self) -> u64 {
        if self.on_gpu() { 32 } else { 64 }
    }

    /// Imports an arrow-rs array to the device; `None` if the device has no room for it.
    pub fn import(&self, array: &dyn ArrowArray) -> Option<DeviceArray> {
        let host = from_arrow(array).expect("arrow-rs arrays are valid");
        let there = self.stream.upload(&host).and_then(|there| self.stream.synchronise().map(|()| there));
        there
            .inspect_err(|error| println!("not run, {} rows of {}: {error}", array.len(), array.data_type()))
            .ok()
    }

    /// Imports bits at their bit offset. A copy would align them, so the bits before them are copied too.
    pub fn import_mask(&self, bits: &BooleanBuffer) -> Option<DeviceArray> {
        self.import_bits(bits, |whole| BooleanArray::new(whole, None))
    }

    /// Imports bits both as values and as the validity of the rows.
    pub fn import_validity(&self, bits: &BooleanBuffer) -> Option<DeviceArray> {
        self.import_bits(bits, |whole| BooleanArray::new(whole.clone(), Some(NullBuffer::new(whole))))
    }

    fn import_bits(
        &self,
        bits: &BooleanBuffer,
        array: impl FnOnce(BooleanBuffer) -> BooleanArray,
    ) -> Option<DeviceArray> {
        let (offset, len) = (bits.offset(), bits.len());
        let whole = array(BooleanBuffer::new(bits.inner().clone(), 0, offset + len));
        Some(self.import(&whole)?.slice(offset, len).expect("rows of the array"))
    }

    /// The rows at which growth is measured, besides the usual ones: only in a full run.
    pub fn growing(&self) -> &'static [usize] {
        if self.scale == Scale::Full { &[100_000, 1_000_000, 100_000_000] } else { &[] }
    }

    /// The number of rows of a batch that engines pass around.
    pub fn batch(&self) -> usize {
        if self.scale == Scale::Tiny { 1_000 } else { 8_192 }
    }

    /// A number of rows that no cache holds.
    pub fn large(&self) -> usize {
        match self.scale {
            Scale::Tiny => 5_000,
            _ if self.on_gpu() => 1 << 28,
            _ => 1 << 24,
        }
    }

    /// Numbers of rows from a batch on, for the curve.
    pub fn between(&self) -> &'static [usize] {
        match self.scale {
            Scale::Tiny => &[],
            Scale::Usual => &[1 << 17, 1 << 20],
            Scale::Full if self.on_gpu() => &[1 << 15, 1 << 17, 1 << 20, 1 << 22, 1 << 24, 1 << 26],
            Scale::Full => &[1 << 15, 1 << 17, 1 << 20, 1 << 22],
        }
    }

    /// A group of these benches, for this device.
    pub fn group<'a>(&'a self, criterion: &'a mut Criterion, id: String, moved: Moved) -> Group<'a> {
        Group::new(criterion, self, id, moved)
    }

    /// Measures the copy rates of this device's memory. Must run before the other benches of a device.
    pub fn copy(&self, criterion: &mut Criterion) {
        let smallest = if self.on_gpu() { 15 } else { 16 };
        let moved: Vec<u32> = match (self.scale, &self.clock) {
            (Scale::Tiny, _) => vec![12, 16],
            (_, Some(_)) => (smallest + 1..=33).step_by(2).collect(),
            // One size that the caches hold, and one that they do not.
            (_, None) => vec![17, 27],
        };
        for bytes in moved.into_iter().map(|power| 1usize << (power - 1)) {
            let id = format!("copy/{}/bytes/{bytes}/-/-/1", self.name);
            if wanted("copy") || wanted(&id) {
                self.copies_of(criterion, id, bytes);
            }
        }
    }

    fn copies_of(&self, criterion: &mut Criterion, id: String, bytes: usize) {
        let mut group = self.group(criterion, id, Moved::bytes(2 * bytes as u64));
        let Some(clock) = &self.clock else {
            let from = vec![1u8; bytes];
            let mut to = vec![2u8; bytes];
            group.theirs("one-thread", || black_box(&mut to).copy_from_slice(black_box(&from)));
            group.theirs("all-threads", || copy_by_all(black_box(&mut to), black_box(&from)));
            return;
        };
        let Some(copies) = clock.copies(bytes) else { return };
        group.group.bench_function("copy", |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| copies.time()).sum())
        });
    }

    /// The rate of a copy that moves about as many bytes, in bytes read and written in a second.
    pub(super) fn copied(&self, moved: u64) -> Option<f64> {
        let rates = self.rates.get_or_init(|| {
            let clock = self.clock.as_ref();
            let sizes: Vec<u32> = match (self.scale, clock) {
                (Scale::Tiny, _) => vec![16],
                (_, Some(_)) => (18..=32).step_by(2).collect(),
                (_, None) => vec![17, 27],
            };
            let median = |mut time: Box<dyn FnMut() -> Duration + '_>| {
                let mut times: Vec<Duration> = (0..11).map(|_| time()).collect();
                times.sort();
                times[5].as_secs_f64()
            };
            let rate = |power: &u32| {
                let moved = 1u64 << *power;
                let bytes = moved as usize / 2;
                let seconds = match clock {
                    Some(clock) => {
                        let copies = clock.copies(bytes)?;
                        median(Box::new(move || copies.time()))
                    }
                    None => {
                        let (from, mut to) = (vec![1u8; bytes], vec![2u8; bytes]);
                        median(Box::new(move || {
                            let start = std::time::Instant::now();
                            copy_by_all(black_box(&mut to), black_box(&from));
                            start.elapsed()
                        }))
                    }
                };
                Some((moved, moved as f64 / seconds))
            };
            sizes.iter().filter_map(rate).collect()
        });
        let far = |known: u64| (known as f64 / moved.max(1) as f64).ln().abs();
        rates.iter().min_by(|a, b| far(a.0).total_cmp(&far(b.0))).map(|(_, rate)| *rate)
    }
}

/// Copies with all of rayon's threads; small copies use one thread, which is faster.
fn copy_by_all(to: &mut [u8], from: &[u8]) {
    use rayon::prelude::*;
    let piece = from.len().div_ceil(rayon::current_num_threads()).max(1 << 18);
    if from.len() <= piece {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
}
