//! Copies arrays between devices of the same runtime without host memory: the source device gathers the
//! buffers, and one copy moves them.

use super::block::{BlockLayout, gather};
use super::extents::sized;
use super::host::in_their_places;
use crate::array::{Columns, DeviceArray};
use crate::device::Stream;
use crate::pass::{Pass, Pending};
use crate::{Error, Result};

impl Stream {
    /// Copies an array or a batch from another device of the same runtime to this stream's device, with one
    /// copy. `from` is a stream of the other device, on which the buffers are gathered. Synchronises once if
    /// only that device knows an extent (of a foreign string's bytes or a view's data); otherwise never.
    /// Arrays that are already on this device are returned unchanged.
    pub fn transfer<C: Columns>(&self, values: &C, from: &Stream) -> Result<C> {
        let arrays = transfer(self, values.arrays().to_vec(), from)?.wait()?;
        C::framed(values.frame(), arrays, values.rows())
    }

    /// Copies an array or batch on the stream's own device. The copy shares no memory with the input.
    /// Synchronises like [`Stream::transfer`].
    pub fn copy<C: Columns>(&self, values: &C) -> Result<C> {
        let mut pass = Pass::begin("copy", self)?;
        values.arrays().iter().try_for_each(|array| pass.input(array))?;
        let arrays = sized(pass, values.arrays().to_vec(), copied).wait()?;
        C::framed(values.frame(), arrays, values.rows())
    }
}

fn transfer(to: &Stream, arrays: Vec<DeviceArray>, from: &Stream) -> Result<Pending<Vec<DeviceArray>>> {
    let (here, there) = (to.device().place(), from.device().place());
    let stays = move |array: &DeviceArray| array.place() == here;
    let moved: Vec<DeviceArray> = arrays.iter().filter(|array| !stays(array)).cloned().collect();
    if moved.is_empty() {
        return Ok(Pending::known(Ok(arrays)));
    }
    if moved.len() < arrays.len() {
        let moved = transfer(to, moved, from)?;
        return Ok(moved.map(move |moved| Ok(in_their_places(&arrays, stays, moved))));
    }
    if here.device_type != there.device_type {
        return Err(Error::invalid(
            "transfer",
            format!("{there} and {here} have nothing to copy between them"),
        ));
    }
    let mut pass = Pass::begin("transfer", from)?;
    for array in &arrays {
        pass.input(array)?;
    }
    let to = to.clone();
    Ok(sized(pass, arrays, move |pass, arrays| transfer_sized(pass, arrays, &to)))
}

fn transfer_sized(mut pass: Pass, arrays: &[DeviceArray], to: &Stream) -> Result<Vec<DeviceArray>> {
    let mut block_layout = BlockLayout::default();
    let laid_out = arrays.iter().map(|array| block_layout.array(array)).collect::<Result<Vec<_>>>()?;
    let total = block_layout.lay_out(usize::MAX)?.total;
    let gathered = gather(&mut pass, &block_layout, total)?;
    let (gathered_at, ready) = (pass.place(), pass.ready());
    pass.finish()?;

    let mut pass = Pass::begin("transfer", to)?;
    pass.wait(&ready)?;
    let region = pass.output(total)?;
    pass.copy_from(&gathered, gathered_at, &region)?;
    let (place, ready, block) = (pass.place(), pass.ready(), region.buffer());
    let arrays = laid_out.into_iter().map(|array| array.build(&block_layout, &block, place, &ready));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(arrays)
}

fn copied(mut pass: Pass, arrays: &[DeviceArray]) -> Result<Vec<DeviceArray>> {
    let mut block_layout = BlockLayout::default();
    let laid_out = arrays.iter().map(|array| block_layout.array(array)).collect::<Result<Vec<_>>>()?;
    let total = block_layout.lay_out(usize::MAX)?.total;
    let gathered = gather(&mut pass, &block_layout, total)?;
    let (place, ready, block) = (pass.place(), pass.ready(), gathered.buffer());
    let arrays = laid_out.into_iter().map(|array| array.build(&block_layout, &block, place, &ready));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(arrays)
}
