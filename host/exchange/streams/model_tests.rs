//! Models of [`Turns`]: several threads use one stream, one of them from inside of its own call.

use std::sync::Arc;

use super::Turns;
use crate::device::model_tests::explore;
use crate::device::sync::thread;

#[test]
fn whoever_waits_gets_its_turn_alone() {
    explore(|| {
        let turns = Arc::new(Turns::new(vec![]));
        let work = |mark: u8| {
            let turns = turns.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let used = turns.with(|values: &mut Vec<u8>| {
                        let before = values.len();
                        thread::yield_now();
                        values.push(mark);
                        assert_eq!(values.len(), before + 1);
                        Ok(())
                    });
                    used.unwrap();
                }
            })
        };
        for thread in [1, 2, 3].map(work) {
            thread.join().unwrap();
        }
        assert_eq!(turns.with(|values| Ok(values.len())), Ok(6));
    });
}

#[test]
fn a_thread_that_asks_from_inside_is_refused_and_no_other_is() {
    explore(|| {
        let turns = Arc::new(Turns::new(0));
        let again = turns.clone();
        let nests = thread::spawn(move || {
            let inner = again.with(|_| {
                thread::yield_now();
                Ok(again.with(|value| Ok(*value)))
            });
            assert!(inner.unwrap().is_err());
            again.with(|value| Ok(*value += 1)).unwrap();
        });
        let others = [(); 2].map(|()| {
            let turns = turns.clone();
            thread::spawn(move || turns.with(|value| Ok(*value += 1)).unwrap())
        });
        nests.join().unwrap();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(turns.with(|value| Ok(*value)), Ok(3));
    });
}
