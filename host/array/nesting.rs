//! Streams made of streams, as deep in each other as a program likes to put them: neither reading one nor letting go of
//! it may take all of a stack.
//!
//! The one idea: a thread knows how deep it is in. One that reads goes no deeper than [`DEPTH`]. One that lets go of a stream while it
//! lets go of another puts it aside, and the outermost does that afterwards.

use std::any::Any;
use std::cell::{Cell, RefCell};

use crate::{Error, Result};

/// As deep as expressions may be.
pub(crate) const DEPTH: usize = 200;

thread_local! {
    static READING: Cell<usize> = const { Cell::new(0) };
    /// What is put aside while this thread lets go of something.
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

/// Drops something, of which others may be a part that come here, too.
pub(crate) fn let_go(of: impl Any + Send) {
    struct Outermost;
    impl Drop for Outermost {
        fn drop(&mut self) {
            let left = ASIDE.with(|aside| aside.borrow_mut().take());
            // Something is left only after a panic.
            drop(left);
        }
    }
    let mut of = Some(of);
    // A thread at its end drops it as ever.
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

    use crate::array::{Batch, Batches, Place};

    #[test]
    fn streams_in_each_other_end_at_a_bound() {
        let schema = std::sync::Arc::new(Schema::empty());
        let batch = Batch::try_new(schema.clone(), vec![], 1).unwrap();
        let nested = |deep: usize| {
            let batch = batch.clone();
            let first =
                Batches::new(schema.clone(), Place::CPU, std::iter::repeat_with(move || Ok(batch.clone())));
            (1..deep).fold(first, |inner, _| Batches::new(schema.clone(), Place::CPU, inner))
        };
        assert_eq!(nested(super::DEPTH).next().unwrap().unwrap().len(), 1);
        let error = nested(super::DEPTH + 1).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("more than 200 streams"), "{error}");
        // Far more than any stack has room for.
        let mut deep = nested(1_000_000);
        assert!(deep.next().unwrap().is_err());
        assert!(deep.next().is_none());
        drop(nested(1_000_000));
    }
}
