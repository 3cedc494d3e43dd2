//! Tests the threads that the library starts: only those of its own pool, and only for large work.

use std::fs;

use crate::support::{children, work};

/// The names of this process's threads.
fn names() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    threads.map(|thread| name(thread.unwrap())).collect()
}

/// Runs in a child process, in which no other code has started threads.
#[test]
#[cfg(target_os = "linux")]
fn only_the_own_pool_is_started_and_only_for_many_rows() {
    const NAME: &str = "threads::only_the_own_pool_is_started_and_only_for_many_rows";
    if children::case().is_none() {
        return children::run(NAME, "count", None, 120, &[("RAYON_NUM_THREADS", "3")]);
    }
    let before = names().len();
    let works = work::all(3);
    for work in &works {
        (work.run)().unwrap();
        assert_eq!(names().len(), before, "{} of three rows has started threads", work.name);
    }
    for work in work::all(300_000) {
        (work.run)().unwrap();
        // A new thread has no name until it has run.
        let all_named = (0..1000).any(|_| {
            let names = names();
            let own = names.iter().filter(|name| name.starts_with("bowstring-")).count();
            std::thread::sleep(std::time::Duration::from_millis(u64::from(names.len() != before + own)));
            names.len() == before + own && own <= 3
        });
        assert!(all_named, "{} has started others' threads: {:?}", work.name, names());
    }
    assert_eq!(names().len(), before + 3, "the pool");
}
