//! The common parts of the benches. `data` makes arrays of a known shape (also used in `peers/`), `model`
//! counts the bytes that an operation must move, `place` is the device, `clock` a GPU's own time, and `notes`
//! the facts that the report needs beside criterion's figures.
//!
//! Ids are `operation/device/type/rows/selectivity/validity/columns` and the contestant: `bowstring` is the
//! device's time (on the CPU the wall time), `bowstring-wall` the time until a GPU's result is there.
//! Throughput is bytes read and written, each counted once.
//!
//! `BOWSTRING_BENCH=full` runs everything; without it, a machine with two cores takes minutes. Without
//! `--bench`, as under `cargo test --benches`, or with `BOWSTRING_BENCH=tiny`, the inputs are tiny and the
//! figures mean nothing.

#![allow(dead_code)]

mod clock;
pub mod data;
pub mod model;
mod notes;
pub mod place;

use std::cell::RefCell;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};

pub use model::Moved;
pub use place::Where;

/// The amount of benches that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// Tiny inputs that only check that a bench runs.
    Tiny,
    /// The default, which takes a first-time user minutes.
    Usual,
    /// Every bench at every size.
    Full,
}

impl Scale {
    pub fn of_this_run() -> Scale {
        let has = |name: &str| std::env::args().any(|argument| argument == name);
        match std::env::var("BOWSTRING_BENCH").as_deref() {
            Ok("full") if has("--bench") && !has("--test") => Scale::Full,
            Ok("tiny") => Scale::Tiny,
            _ if has("--bench") && !has("--test") => Scale::Usual,
            _ => Scale::Tiny,
        }
    }
}

/// Whether the command line selects a bench of this group; inputs are made only for selected benches.
pub fn wanted(id: &str) -> bool {
    const ALONE: [&str; 16] = [
        "--bench",
        "--test",
        "--list",
        "--ignored",
        "--exact",
        "--noplot",
        "-n",
        "--discard-baseline",
        "--quick",
        "--quiet",
        "--verbose",
        "-v",
        "--nocapture",
        "--show-output",
        "--include-ignored",
        "--",
    ];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if !argument.starts_with('-') {
            // A full id names its function too, and several ids may be given. Criterion matches other
            // expressions.
            let one = |asked: &str| {
                let plain = !asked.contains(['\\', '^', '$', '*', '+', '?', '[', ']', '(', ')', '{', '}']);
                !plain || id.contains(asked) || asked.starts_with(id)
            };
            return argument.split('|').any(one);
        }
        if !ALONE.contains(&argument.as_str()) && !argument.contains('=') {
            arguments.next();
        }
    }
    true
}

/// The benches of one id: ours, and on the CPU others in the same process.
pub struct Group<'a> {
    place: &'a Where,
    id: String,
    moved: Moved,
    group: BenchmarkGroup<'a, WallTime>,
}

impl<'a> Group<'a> {
    /// A group for a bench that moves this many bytes.
    pub fn new(criterion: &'a mut Criterion, place: &'a Where, id: String, moved: Moved) -> Group<'a> {
        let (warm_up, measure) = match (place.scale, place.on_gpu()) {
            (Scale::Tiny, _) => (1, 10),
            (Scale::Usual, false) => (100, 400),
            (Scale::Full, false) => (150, 500),
            (_, true) => (50, 200),
        };
        let mut group = criterion.benchmark_group(&id);
        group.sample_size(10);
        // Medians need no more resamples.
        group.nresamples(2_000);
        group.warm_up_time(Duration::from_millis(warm_up));
        group.measurement_time(Duration::from_millis(measure));
        group.throughput(Throughput::Bytes(moved.bytes));
        notes::moves(&id, &moved);
        Group { place, id, moved, group }
    }

    /// Benches the library itself.
    pub fn ours<R>(&mut self, mut run: impl FnMut() -> R) {
        let place = self.place;
        // A failure on an untested device must not end the other benches.
        let once = || {
            let result = run();
            place.stream.synchronise().expect("the work was good");
            drop(result);
        };
        if catch_unwind(AssertUnwindSafe(once)).is_err() {
            println!("FAILED: {}", self.id);
            return place.failed.set(true);
        }
        let taken = RefCell::new(vec![]);
        let Some(clock) = &place.clock else {
            self.group.bench_function("bowstring", |bencher| {
                bencher.iter_custom(|times| {
                    let start = Instant::now();
                    for _ in 0..times {
                        black_box(run());
                    }
                    let all = start.elapsed();
                    taken.borrow_mut().push(all.as_secs_f64() / times as f64);
                    all
                })
            });
            return self.say_share(taken.into_inner());
        };
        self.group.bench_function("bowstring", |bencher| {
            bencher.iter_custom(|times| {
                let all: Duration = (0..times).map(|_| clock.time(&mut run)).sum();
                taken.borrow_mut().push(all.as_secs_f64() / times as f64);
                all
            })
        });
        self.say_share(taken.into_inner());
        self.group.bench_function("bowstring-wall", |bencher| {
            bencher.iter_custom(|times| {
                let mut all = Duration::ZERO;
                for _ in 0..times {
                    let start = Instant::now();
                    let result = black_box(run());
                    place.stream.synchronise().expect("the work was good");
                    all += start.elapsed();
                    drop(result);
                }
                all
            })
        });
    }

    /// Benches a peer in this process; only the CPU has some.
    pub fn theirs<R>(&mut self, who: &str, mut run: impl FnMut() -> R) {
        if !self.place.on_gpu() {
            self.group.bench_function(who, |bencher| bencher.iter(&mut run));
        }
    }

    /// Benches the wall time of one run on each of several threads at once.
    pub fn on_threads<R>(&mut self, who: &str, threads: usize, run: impl Fn() -> R + Sync) {
        let barrier = Barrier::new(threads + 1);
        self.group.bench_function(who, |bencher| {
            bencher.iter_custom(|times| {
                let each = || {
                    barrier.wait();
                    (0..times).for_each(|_| drop(black_box(run())));
                    barrier.wait();
                };
                thread::scope(|scope| {
                    (0..threads).for_each(|_| drop(scope.spawn(each)));
                    barrier.wait();
                    let start = Instant::now();
                    barrier.wait();
                    start.elapsed()
                })
            })
        });
    }

    /// Prints the share of the rate that a copy of as many bytes reached in this run.
    fn say_share(&self, mut seconds: Vec<f64>) {
        if self.place.scale == Scale::Tiny {
            return;
        }
        seconds.sort_by(f64::total_cmp);
        let (Some(median), Some(copied)) =
            (seconds.get(seconds.len() / 2), self.place.copied(self.moved.bytes))
        else {
            return;
        };
        let share = |bytes: u64| bytes as f64 / median / copied;
        print!("{:>24}share of a copy's rate: {:.2}", "", share(self.moved.bytes));
        match self.moved.sectors {
            Some(sectors) => println!("; counted in the sectors that it must touch: {:.2}", share(sectors)),
            None => println!(),
        }
    }
}
