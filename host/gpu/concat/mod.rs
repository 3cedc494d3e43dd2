//! Concatenation of arrays of any type.
//!
//! The one idea: the type, or two of an array's offsets, tell what lies below its rows. So the arrays of one
//! type form a tree, walked from the top. The host reads what it needs for all nodes reached so far at once:
//! one read for each level of text or lists in lists. Then the result is built from the bottom up
//! (`joined.rs`).
//!
//! Text, lists and runs contribute only what their rows cover. Elements that rows merely point into come
//! whole: dictionaries, the items of list views, the members of dense unions.

pub(crate) mod joined;

use std::ops::Range;

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::gather::concat::{SPANS, SpanRow, Spans};
use bowstring_kernels::target::find;

use super::bitmap::aligned;
use super::indices::index_width;
use super::rows::offsets_of;
use super::structure::runs::SliceRuns;
use crate::array::{DeviceArray, Slot, children};
use crate::pass::{Looks, Pass, Pending, Seen, Table, Words};
use crate::transfer::sized_arrays;
use crate::{Error, Result, Stream};

/// Concatenates arrays of one type. `None` if a dictionary's keys are too narrow for all values together;
/// merging equal values might make them fit. Reads once for each level at which lengths or runs are data, and
/// once if only the device knows an extent.
pub(crate) fn concat(arrays: &[&DeviceArray], stream: &Stream) -> Result<Pending<Option<DeviceArray>>> {
    let Some(first) = arrays.first() else { return Err(Error::invalid("concat", "no arrays")) };
    let mut pass = Pass::begin("concat", stream)?;
    arrays.iter().try_for_each(|array| pass.input(array))?;
    let data_type = first.data_type().clone();
    let arrays = arrays.iter().copied().cloned().collect();
    Ok(Pending::begin(stream, async move {
        let arrays = sized_arrays(&mut pass, arrays).await?;
        let Some(nodes) = plan(&mut pass, &data_type, arrays).await? else { return Ok(None) };
        let mut joined: Vec<Option<DeviceArray>> = nodes.iter().map(|_| None).collect();
        // Nodes below come later in the list, so the loop runs backwards.
        for (i, node) in nodes.iter().enumerate().rev() {
            let below = joined[node.below.clone()].iter_mut().filter_map(Option::take).collect();
            joined[i] = Some(node.join(&mut pass, below)?);
        }
        pass.finish()?;
        Ok(joined.swap_remove(0))
    }))
}

/// Arrays of one type that are concatenated.
struct Node {
    data_type: DataType,
    /// The arrays that have rows.
    pieces: Vec<DeviceArray>,
    /// The nodes of the children or of the dictionary.
    below: Range<usize>,
    found: Found,
}

/// The result of reading a node's arrays.
enum Found {
    Nothing,
    /// The range of elements of each array.
    Spans(Vec<Range<usize>>),
    /// The run ends of each array.
    Ends(Vec<DeviceArray>),
}

/// The words that the host must read for a node.
enum Look {
    Spans(Seen),
    Runs(Vec<(SliceRuns, Seen)>),
}

impl Look {
    /// Launches what finds the extent of a node's children; `None` if nothing needs to be read.
    fn at(pass: &mut Pass, node: &Node, looks: &mut Looks) -> Result<Option<Look>> {
        if node.pieces.len() < 2 {
            return Ok(None);
        }
        if let DataType::RunEndEncoded(..) = node.data_type {
            let runs = node.pieces.iter().map(|piece| {
                let runs = SliceRuns::new(pass, piece)?;
                let seen = looks.at(runs.counters());
                Ok((runs, seen))
            });
            return runs.collect::<Result<_>>().map(|runs| Some(Look::Runs(runs)));
        }
        let Some(width) = node.offset_width() else { return Ok(None) };
        let mut table = Table::default();
        for piece in &node.pieces {
            let offsets = aligned(pass, &offsets_of(piece, width), width)?;
            table.push(&SpanRow { offsets, rows: piece.len() as u64 });
        }
        let (arrays, out) = (pass.upload(table.words())?, pass.rows(2 * table.len(), 8)?);
        let entry = find(SPANS, &[width as u32]).ok_or_else(|| pass.unsupported(&node.data_type))?;
        let args = Spans { arrays: arrays.input(), count: table.len() as u64, out: out.out() };
        pass.launch(entry, &args)?;
        Ok(Some(Look::Spans(looks.at([&out]))))
    }
}

/// Plans all nodes, each before those below it; `None` as [`concat`] says.
async fn plan(pass: &mut Pass, data_type: &DataType, arrays: Vec<DeviceArray>) -> Result<Option<Vec<Node>>> {
    let mut nodes = vec![Node::new(data_type, arrays)];
    let (mut next, mut waiting) = (0, vec![]);
    loop {
        let mut looks = Looks::default();
        while next < nodes.len() {
            match Look::at(pass, &nodes[next], &mut looks)? {
                Some(look) => waiting.push((next, look)),
                None if !expand(&mut nodes, next, None)? => return Ok(None),
                None => {}
            }
            next += 1;
        }
        if waiting.is_empty() {
            return Ok(Some(nodes));
        }
        let words = looks.read(pass).await?;
        for (at, look) in waiting.drain(..) {
            let values = nodes[at].answered(pass, &look, &words)?;
            expand(&mut nodes, at, values)?;
        }
    }
}

/// Adds the nodes below one. `values` are those of runs, known only after reading. Returns whether keys have
/// room for all values.
fn expand(nodes: &mut Vec<Node>, at: usize, values: Option<Vec<DeviceArray>>) -> Result<bool> {
    let first = nodes.len();
    let Some(below) = nodes[at].what_is_below(values)? else { return Ok(false) };
    nodes.extend(below);
    nodes[at].below = first..nodes.len();
    Ok(true)
}

impl Node {
    fn new(data_type: &DataType, mut pieces: Vec<DeviceArray>) -> Node {
        pieces.retain(|piece| !piece.is_empty());
        Node { data_type: data_type.clone(), pieces, below: 0..0, found: Found::Nothing }
    }

    /// Returns the bytes of an offset; `None` for types without offsets.
    fn offset_width(&self) -> Option<usize> {
        self.pieces.first()?.layout().slots().find_map(|slot| match slot {
            Slot::Offsets(width) => Some(width),
            _ => None,
        })
    }

    /// Records the words that were read. Returns the values of runs.
    fn answered(&mut self, pass: &Pass, look: &Look, words: &Words) -> Result<Option<Vec<DeviceArray>>> {
        match look {
            Look::Spans(seen) => {
                let spans = self.pieces.iter().zip(words[seen].chunks_exact(2));
                let spans = spans.map(|(piece, span)| checked(piece, span[0], span[1]));
                self.found = Found::Spans(spans.collect::<Result<_>>()?);
                Ok(None)
            }
            Look::Runs(runs) => {
                let found = runs.iter().map(|(runs, seen)| runs.found(pass, &words[seen]));
                let (ends, values) = found.collect::<Result<Vec<_>>>()?.into_iter().unzip();
                self.found = Found::Ends(ends);
                Ok(Some(values))
            }
        }
    }

    /// Returns the nodes below, in the order of the type's children; `None` if keys have no room for all
    /// values.
    fn what_is_below(&self, values: Option<Vec<DeviceArray>>) -> Result<Option<Vec<Node>>> {
        if self.pieces.len() < 2 {
            return Ok(Some(vec![]));
        }
        let types = children(&self.data_type);
        let each = |part: &dyn Fn(&DeviceArray, usize) -> Result<DeviceArray>| {
            let below = types.iter().enumerate().map(|(i, data_type)| {
                let parts = self.pieces.iter().map(|piece| part(piece, i)).collect::<Result<_>>()?;
                Ok(Node::new(data_type, parts))
            });
            below.collect::<Result<_>>().map(Some)
        };
        match (&self.data_type, &self.found) {
            (DataType::RunEndEncoded(_, field), _) => {
                Ok(Some(vec![Node::new(field.data_type(), values.unwrap_or_default())]))
            }
            (_, Found::Spans(spans)) => {
                let covered = |data_type| {
                    let parts = self.pieces.iter().zip(spans);
                    let parts = parts.map(|(piece, span)| piece.children()[0].slice(span.start, span.len()));
                    Ok(Node::new(data_type, parts.collect::<Result<_>>()?))
                };
                types.into_iter().map(covered).collect::<Result<_>>().map(Some)
            }
            (DataType::Dictionary(key, of), _) => self.dictionary(key, of),
            (
                DataType::Struct(_) | DataType::FixedSizeList(..) | DataType::Union(_, UnionMode::Sparse),
                _,
            ) => each(&|piece, i| piece.child_rows(i)),
            _ => each(&|piece, i| Ok(piece.children()[i].clone())),
        }
    }

    /// Returns a node of the dictionaries' values, or none if all pieces share one dictionary.
    fn dictionary(&self, key: &DataType, of: &DataType) -> Result<Option<Vec<Node>>> {
        let values: Vec<DeviceArray> =
            self.pieces.iter().filter_map(DeviceArray::dictionary).cloned().collect();
        if values.windows(2).all(|two| two[0].is_same_memory(&two[1])) {
            return Ok(Some(vec![]));
        }
        let all = values.iter().fold(0, |sum: u64, values| sum.saturating_add(values.len() as u64));
        let (_, greatest) = index_width(key)?;
        Ok((all <= greatest.saturating_add(1)).then(|| vec![Node::new(of, values)]))
    }
}

/// Returns the elements that an array's first and last offset delimit, or an error if they are out of bounds.
fn checked(array: &DeviceArray, first: u64, last: u64) -> Result<Range<usize>> {
    let there = match array.children() {
        [child, ..] => child.len(),
        [] => array.buffers()[1].bytes().unwrap_or(0),
    };
    if first <= last && last <= there as u64 {
        return Ok(first as usize..last as usize);
    }
    let problem = format!("elements {first} to {last} of {there}");
    Err(Error::OutOfSpec { at: format!("offsets of {}", array.data_type()), problem })
}
