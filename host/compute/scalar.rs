//! A single value, for operations that use the same value for all rows.

use arrow_array::Datum;
use arrow_schema::DataType;

use crate::array::Slot;
use crate::{DeviceArray, Error, Result, Stream, cpu, exchange};

use super::admit;
use crate::expr::Literal;
use crate::expr::plan::is_text;

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
        let array = admit("scalar", array, &Stream::cpu())?;
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
        let is_null = |bits| !cpu::nulls::is_valid(bits, 0);
        self.0.validity().map_or(*self.data_type() == DataType::Null, is_null)
    }

    /// Uploads the value to a stream's device, as an array of one row.
    pub(super) fn on(&self, stream: &Stream) -> Result<DeviceArray> {
        stream.upload(&self.0)
    }

    /// The bits of a value of fixed width, at most 32 bytes, lowest word first; `None` for other types.
    pub(super) fn words(&self) -> Option<[u64; 4]> {
        let (values, row) = (self.0.buffers(), self.0.offset());
        let mut words = [0; 4];
        match self.0.layout().slots {
            [Some(Slot::Bits), None] => {
                words[0] = u64::from(cpu::memory::bytes(&values[0])[row / 8] >> (row % 8) & 1);
            }
            [Some(Slot::Fixed(width)), None] if self.0.children().is_empty() && width <= 32 => {
                let bytes = &cpu::memory::bytes(&values[0])[row * width..][..width];
                for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
                    let mut whole = [0; 8];
                    whole[..bytes.len()].copy_from_slice(bytes);
                    *word = u64::from_le_bytes(whole);
                }
            }
            _ => return None,
        }
        Some(words)
    }
}

impl TryFrom<&Scalar> for Literal {
    type Error = Error;

    /// Converts the value into a typed literal. Returns [`Error::Invalid`] if expressions do not support the
    /// type.
    fn try_from(scalar: &Scalar) -> Result<Literal> {
        let data_type = scalar.data_type();
        if scalar.is_null() {
            return Ok(Literal::null(data_type.clone()));
        }
        if is_text(data_type) {
            return cpu::text::single(&scalar.0).map(|bytes| Literal::text(data_type.clone(), bytes));
        }
        let bits = scalar.words().map(|words| u128::from(words[1]) << 64 | u128::from(words[0]));
        let literal = bits.and_then(|bits| Literal::of_bits(data_type, bits));
        literal
            .ok_or_else(|| Error::invalid("literal", format!("expressions do not compute with {data_type}")))
    }
}
