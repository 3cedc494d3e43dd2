//! Fuzzes metadata of the C interface: counts and lengths may be negative, words may not be text, and the
//! memory ends after the last byte.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::ptr::null;

use arrow_schema::DataType;
use bowstring::Error;
use bowstring::exchange::{import_async_batches, import_schema};

use super::input::Input;
use super::world::outcome;
use crate::exchange::foreign::Elsewhere;
use crate::exchange::foreign_schema::RawSchema;
use crate::exchange::foreign_sender::RawSender;
use crate::support::guarded;

/// A producer's words. Each is in memory that ends after its last byte, and lives as long as this.
#[derive(Default)]
pub struct Words(Vec<Elsewhere>);

impl Words {
    pub fn keep(&mut self, bytes: &[u8]) -> *const c_char {
        let kept = guarded(bytes);
        let pointer: *const c_void = kept.pointer;
        self.0.push(kept);
        pointer.cast()
    }

    /// Keeps a text that ends with a zero.
    pub fn text(&mut self, text: &str) -> *const c_char {
        self.keep(&[text.replace('\0', "0").as_bytes(), b"\0"].concat())
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|word| (word.spoil)());
    }
}

/// The bytes of some pairs, and the pairs if the bytes are valid.
pub fn stranger(input: &mut Input<'_>) -> (Vec<u8>, Option<BTreeMap<String, String>>) {
    let mut bytes = vec![];
    let number = |bytes: &mut Vec<u8>, honest: usize, input: &mut Input<'_>| {
        let wrong = input.one_in(24);
        let said = if wrong { *input.pick(&[-1, i32::MIN, -2]) } else { honest as i32 };
        bytes.extend(said.to_ne_bytes());
        !wrong
    };
    let pairs = input.below(5);
    if !number(&mut bytes, pairs, input) {
        return (bytes, None);
    }
    let mut said = Some(BTreeMap::new());
    for _ in 0..pairs {
        let mut pair = vec![];
        for _ in 0..2 {
            let len = *input.pick(&[1, 0, 3, 12, 300]);
            if !number(&mut bytes, len, input) {
                return (bytes, None);
            }
            let (any, rng) = (input.one_in(8), &mut input.chance());
            let word: Vec<u8> =
                rng.bytes(len).into_iter().map(|byte| if any { byte } else { byte % 26 + b'a' }).collect();
            bytes.extend(&word);
            pair.push(String::from_utf8(word).ok());
        }
        match (&mut said, pair.pop().flatten(), pair.pop().flatten()) {
            (Some(said), Some(value), Some(key)) => drop(said.insert(key, value)),
            _ => said = None,
        }
    }
    (bytes, said)
}

/// The target: reads the same bytes as a schema's metadata and as an asynchronous stream's.
pub fn target(bytes: &[u8]) {
    let input = &mut Input::new(bytes);
    let (written, said) = stranger(input);
    let mut words = Words::default();
    let at = words.keep(&written);
    let field = RawSchema::new(c"i", vec![]);
    let schema = RawSchema::new(c"+s", vec![field]).with(|schema| schema.metadata = at).into_ours();
    // SAFETY: its pointers point to what the interface wants.
    let read = outcome("schema", unsafe { import_schema(&schema) });
    let read = read.map(|schema| schema.metadata().clone().into_iter().collect());
    assert!(said.is_none() || read == said, "{read:?}, not {said:?}");
    drop(schema);

    let (mut reader, handler) = import_async_batches(&bowstring::Device::cpu(), 2);
    let mut sender = RawSender::new(handler);
    sender.bend(|producer| producer.additional_metadata = at);
    let code = sender.schema(crate::exchange::foreign::schema(&DataType::Struct(
        vec![arrow_schema::Field::new("n", DataType::Int32, true)].into(),
    )));
    sender.bend(|producer| producer.additional_metadata = null());
    assert!(said.is_none() || code == 0, "refused with {code}");
    assert!(said.is_none() || Some(reader.metadata()) == said, "{:?}, not {said:?}", reader.metadata());
    // SAFETY: so many bytes were kept there.
    let again = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), written.len()) };
    sender.error(5, Some("no more"), Some(again));
    sender.release();
    // If the bytes are invalid, the schema has ended the stream already.
    if let (Err(Error::Producer { metadata, .. }), Some(said)) = (next(&mut reader), &said) {
        assert_eq!(metadata, *said);
    }
}

/// Polls a stream that has an end or an error ready.
fn next(reader: &mut bowstring::exchange::AsyncBatchReader) -> Result<(), Error> {
    use futures_core::Stream as _;
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(reader).poll_next(context) {
        std::task::Poll::Ready(Some(Err(error))) => {
            Err(outcome("error", Err::<(), _>(error.clone())).map_or(error, |()| unreachable!()))
        }
        _ => Ok(()),
    }
}
