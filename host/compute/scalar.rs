//! A single value, for operations that use the same value for all rows.

use arrow_array::Datum;
use arrow_schema::DataType;

use super::{engine, reach};
use crate::cpu::scalar;
use crate::expr::Literal;
use crate::expr::plan::is_text;
use crate::{DeviceArray, Error, Result, Stream, exchange};

/// A single value of any type, possibly null, like arrow-rs' `Scalar`. It is an array of one row in host
/// memory; the launch that needs it transfers it to the device.
///
/// ```
/// use arrow_array::{Int32Array, Scalar as ArrowScalar, StringArray};
/// use bowstring::{compute::Scalar, exchange::from_arrow};
/// # fn main() -> bowstring::Result<()> {
/// let five = Scalar::from_arrow(&Int32Array::new_scalar(5))?;
/// assert!(!five.is_null());
/// let two = from_arrow(&StringArray::from(vec!["not", "one"]))?;
/// assert!(Scalar::try_new(&two).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scalar(DeviceArray);

impl Scalar {
    /// Creates a scalar from an array of one row in memory that the host can read. Waits for the array's
    /// event.
    pub fn try_new(array: &DeviceArray) -> Result<Scalar> {
        let host = Stream::cpu();
        reach("scalar", array, &host)?;
        let array = engine(&host).admit(array, &host)?;
        match array.len() {
            1 => Ok(Scalar(array.into_owned())),
            rows => Err(Error::invalid("scalar", format!("an array of {rows} rows, not one"))),
        }
    }

    /// Creates a scalar from an arrow-rs scalar, or from an arrow-rs array of one row.
    pub fn from_arrow(scalar: &dyn Datum) -> Result<Scalar> {
        Scalar::try_new(&exchange::from_arrow(scalar.get().0)?)
    }

    /// The Arrow type of the value.
    pub fn data_type(&self) -> &DataType {
        self.0.data_type()
    }

    /// Whether the value is null by its own validity.
    pub fn is_null(&self) -> bool {
        scalar::is_null(&self.0)
    }

    /// Uploads the value to a stream's device, as an array of one row.
    pub(super) fn on(&self, stream: &Stream) -> Result<DeviceArray> {
        stream.upload(&self.0)
    }

    /// The bits of a value of fixed width, at most 32 bytes, lowest word first; `None` for other types.
    pub(super) fn words(&self) -> Option<[u64; 4]> {
        scalar::words(&self.0)
    }
}

impl TryFrom<&Scalar> for Literal {
    type Error = Error;

    /// Converts the value into a typed literal. Returns [`Error::Invalid`] if expressions do not support the
    /// type.
    fn try_from(value: &Scalar) -> Result<Literal> {
        let data_type = value.data_type();
        if value.is_null() {
            return Ok(Literal::null(data_type.clone()));
        }
        if is_text(data_type) {
            return scalar::text(&value.0).map(|bytes| Literal::text(data_type.clone(), bytes));
        }
        let bits = value.words().map(|words| u128::from(words[1]) << 64 | u128::from(words[0]));
        let literal = bits.and_then(|bits| Literal::of_bits(data_type, bits));
        literal
            .ok_or_else(|| Error::invalid("literal", format!("expressions do not compute with {data_type}")))
    }
}
