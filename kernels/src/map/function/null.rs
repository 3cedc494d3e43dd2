//! Functions that replace nulls and leave valid values as they are.

use super::words::{Parameter, Words};
use super::{Native, U256, ValueFunction};

/// Replaces a null by the value in the field.
#[derive(Clone, Copy)]
pub struct FillNull<T>(pub T);

impl<T: Native> ValueFunction for FillNull<T> {
    type From = T;
    type To = T;
    const ALWAYS: bool = true;
    const FILLS_NULLS: bool = true;
    #[inline(always)]
    fn call(&self, x: T) -> (T, bool) {
        (x, true)
    }
    #[inline(always)]
    fn of_null(&self) -> T {
        self.0
    }
}

/// The value's bits, in the same number of words for each type.
impl<T: Native> Parameter for FillNull<T> {
    #[inline(always)]
    fn write(&self, to: &mut Words) {
        self.0.to_bits().write(to);
    }
    #[inline(always)]
    fn read(from: &mut Words) -> Self {
        FillNull(T::from_bits(U256::read(from)))
    }
}
