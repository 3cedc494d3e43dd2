//! Limits the nesting of streams that wrap other streams, so that neither reading nor dropping one can
//! exhaust the stack.
//!
//! The one idea: each thread tracks its depth. Reads go no deeper than [`DEPTH`]. If a stream is dropped
//! while another one is being dropped, it is deferred, and the outermost drop frees it afterwards.

use std::any::Any;
use std::cell::{Cell, RefCell};

use crate::{Error, Result};

/// The deepest nesting of streams; the same as for expressions.
pub(crate) const DEPTH: usize = 200;

thread_local! {
    static READING: Cell<usize> = const { Cell::new(0) };
    /// The deferred values, while this thread drops a stream.
    static ASIDE: RefCell<Option<Vec<Box<dyn Any + Send>>>> = const { RefCell::new(None) };
}

/// Asks a stream for its next item, which may ask others.
pub(crate) fn read<T>(next: impl FnOnce() -> T) -> Result<T> {
    struct Inside(usize);
    impl Drop for Inside {
        fn drop(&mut self) {
            READING.set(self.0);
        }
    }
    let inside = Inside(READING.get());
    if inside.0 >= DEPTH {
        return Err(Error::invalid("stream", format!("more than {DEPTH} streams in each other")));
    }
    READING.set(inside.0 + 1);
    Ok(next())
}

/// Drops a value whose fields may call this function, too.
pub(crate) fn let_go(of: impl Any + Send) {
    struct Outermost;
    impl Drop for Outermost {
        fn drop(&mut self) {
            let left = ASIDE.with(|aside| aside.borrow_mut().take());
            // The list is non-empty only after a panic.
            drop(left);
        }
    }
    let mut of = Some(of);
    // While a thread ends, its thread-local list is gone and the value is dropped directly.
    let put_aside = ASIDE.try_with(|aside| {
        let mut aside = aside.borrow_mut();
        match &mut *aside {
            Some(aside) => aside.extend(of.take().map(|of| Box::new(of) as Box<dyn Any + Send>)),
            None => *aside = Some(vec![]),
        }
    });
    if of.is_none() || put_aside.is_err() {
        return;
    }
    let _outermost = Outermost;
    drop(of);
    while let Some(next) = ASIDE.with(|aside| aside.borrow_mut().as_mut().and_then(Vec::pop)) {
        drop(next);
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema;

    use crate::array::{Batches, DeviceBatch, Place};

    #[test]
    fn streams_in_each_other_end_at_a_bound() {
        let schema = std::sync::Arc::new(Schema::empty());
        let batch = DeviceBatch::try_new(schema.clone(), vec![], 1).unwrap();
        let nested = |deep: usize| {
            let batch = batch.clone();
            let first =
                Batches::new(schema.clone(), Place::CPU, std::iter::repeat_with(move || Ok(batch.clone())));
            (1..deep).fold(first, |inner, _| Batches::new(schema.clone(), Place::CPU, inner))
        };
        assert_eq!(nested(super::DEPTH).next().unwrap().unwrap().len(), 1);
        let error = nested(super::DEPTH + 1).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("more than 200 streams"), "{error}");
        // Far deeper than any stack could recurse.
        let mut deep = nested(1_000_000);
        assert!(deep.next().unwrap().is_err());
        assert!(deep.next().is_none());
        drop(nested(1_000_000));
    }
}
