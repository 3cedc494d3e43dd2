//! The keys of rows: what each column adds to them, and the words that kernels make of it.

use arrow_schema::{DataType, SortOptions};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::sort::words::{WORDS, Words};
use bowstring_kernels::target::find;

use crate::Result;
use crate::array::{Bitmap, DeviceArray};
use crate::gpu::bitmap::aligned;
use crate::gpu::rows::rows_of;
use crate::pass::{BitPointer, Pass, bits, validity};
use crate::rules::{Order, Word, words};

/// The most bytes of a value of which each byte is a word: each may take a placement.
pub(super) const WIDEST: i32 = 64;

/// A key, as numbers that order as its rows.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub words: In<u8>,
    /// The bytes of a word: 4 or 8.
    pub width: usize,
}

/// A part of the rows' keys.
pub(super) enum Part<'a> {
    Words(Source<'a>),
    /// Text or bytes of any length, and the bits that flip in every word of them.
    Text(&'a DeviceArray, u64),
}

/// Words of a column: where they are, and how they order.
pub(super) struct Source<'a> {
    values: &'a DeviceArray,
    from: From,
    /// The bits that flip in every word, and those that flip in words whose highest bit is set.
    flips: [u64; 2],
}

enum From {
    Validity,
    Bits,
    /// A word of a value of so many bytes.
    Word(Word, usize),
}

/// Adds the parts of a column's values, and one for its nulls before them.
pub(super) fn add_parts<'a>(
    pass: &Pass,
    values: &'a DeviceArray,
    options: SortOptions,
    parts: &mut Vec<Part<'a>>,
) -> Result<()> {
    if *values.data_type() == DataType::Null {
        return Ok(());
    }
    if values.possible_nulls().is_some() {
        // A valid row has the greater bit, unless nulls come last.
        let flips = [(!options.nulls_first).into(), 0];
        parts.push(Part::Words(Source { values, from: From::Validity, flips }));
    }
    let descending = |all: u64| if options.descending { all } else { 0 };
    let of_words = |words: Vec<Word>, width: usize| {
        words.into_iter().map(move |word| {
            let [always, negative] = word.order.flips(word.width);
            let flips = [always ^ descending(u64::MAX >> (64 - 8 * word.width)), negative];
            Part::Words(Source { values, from: From::Word(word, width), flips })
        })
    };
    match values.data_type() {
        DataType::Boolean => {
            parts.push(Part::Words(Source { values, from: From::Bits, flips: [descending(1), 0] }));
        }
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => parts.push(Part::Text(values, descending(u64::MAX))),
        DataType::FixedSizeBinary(width) if (0..=WIDEST).contains(width) => {
            let byte = |at| Word { at, width: 1, order: Order::Unsigned };
            parts.extend(of_words((0..*width as usize).map(byte).collect(), *width as usize));
        }
        other => {
            let words = words(other).zip(other.primitive_width());
            let (words, width) = words.ok_or_else(|| pass.unsupported(other))?;
            parts.extend(of_words(words, width));
        }
    }
    Ok(())
}

impl Source<'_> {
    /// Launches what makes the words.
    pub fn key(&self, pass: &mut Pass, rows: usize, differs: Out<u64>) -> Result<Key> {
        let array = self.values;
        let unbound = (In::absent(), 0);
        let (entry, (values, at), stride, (valid, valid_offset)) = match &self.from {
            From::Validity => (0, bytes(validity(array)), 0, unbound),
            From::Bits => {
                let values = Bitmap { buffer: array.buffers()[0].clone(), offset: array.offset() };
                (0, bytes(bits(&values)), 0, validity(array))
            }
            From::Word(word, width) => {
                let values = aligned(pass, &rows_of(array, &array.buffers()[0], *width), word.width)?;
                let at = (word.at / word.width) as u64;
                (word.width as u32, (values, at), (width / word.width) as u64, validity(array))
            }
        };
        let width = if entry == 8 { 8 } else { 4 };
        let words = pass.rows(rows, width)?;
        let [always, negative] = self.flips;
        let args = Words {
            values,
            stride,
            at,
            always,
            negative,
            valid,
            valid_offset,
            rows: rows as u64,
            words: words.out(),
            differs,
        };
        let entry = find(WORDS, &[entry]).ok_or_else(|| pass.unsupported(array.data_type()))?;
        pass.launch(entry, &args)?;
        Ok(Key { words: words.input(), width })
    }
}

fn bytes((words, offset): BitPointer) -> (In<u8>, u64) {
    (words.cast(), offset)
}
