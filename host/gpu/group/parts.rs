//! Parts of rows that hashes of their keys choose.

use arrow_schema::DataType::{UInt32, UInt64};
use bowstring_kernels::group::parts::{PARTS, Parts, SEED};
use bowstring_kernels::group::segments::{SPANS, Spans};

use super::keys::{described, make_words};
use super::segments::placed;
use crate::array::{DeviceArray, all_inside};
use crate::engine::HashPartitions;
use crate::pass::{Looks, Pass, Pending};
use crate::{Result, Stream};

/// Orders the rows of plain columns by the part that a hash of their keys chooses. It reads once.
pub(crate) fn partition_by_hash(
    columns: &[DeviceArray],
    parts: usize,
    stream: &Stream,
) -> Result<Pending<HashPartitions>> {
    let (columns, on) = (columns.to_vec(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let rows = columns.first().map_or(0, DeviceArray::len);
        let mut pass = Pass::begin("partition_by_hash", &on)?;
        let (keys, _) = described(&mut pass, &columns, true).await?;
        if rows == 0 {
            let none = pass.output(0)?;
            let order = pass.array(UInt32, 0, &none)?;
            pass.finish()?;
            return Ok(HashPartitions { order, starts: vec![0; parts + 1] });
        }
        let fault = pass.first_rows(1, rows)?;
        let words = make_words(&mut pass, &keys, rows, false, SEED, &fault)?.words;
        let ids = pass.rows(rows, 4)?;
        let args = Parts { words, rows: rows as u64, parts: parts as u64, out: ids.out() };
        pass.launch(&PARTS[0], &args)?;
        let order = placed(&mut pass, ids.input(), rows, parts - 1)?;
        // Parts without rows have no places.
        let spans = pass.zeroed(parts * 8)?;
        let args = Spans {
            order: order.input(),
            ids: ids.input(),
            rows: rows as u64,
            groups: parts as u64,
            spans: spans.out(),
        };
        pass.launch(&SPANS[0], &args)?;
        let mut looks = Looks::default();
        let [fault, spans] = [&fault, &spans].map(|region| looks.at([region]));
        let read = looks.read(&mut pass).await?;
        all_inside(&read[&fault])?;
        let mut starts = vec![0];
        // A word has a part's first place below, and the place after its last above.
        let lengths = read[&spans].iter().take(parts).map(|span| (span >> 32) - (span & 0xffff_ffff));
        starts.extend(lengths.scan(0, |end, len| {
            *end += len as usize;
            Some(*end)
        }));
        let order = pass.array(UInt32, rows, &order)?;
        pass.finish()?;
        Ok(HashPartitions { order, starts })
    }))
}

/// Makes the hashes that choose parts. Rows outside of their buffers are an error when it is waited for.
pub(crate) fn hash_rows(columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
    let (columns, on) = (columns.to_vec(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let rows = columns.first().map_or(0, DeviceArray::len);
        let mut pass = Pass::begin("partition_by_hash", &on)?;
        let (keys, _) = described(&mut pass, &columns, true).await?;
        let fault = pass.first_rows(1, rows)?;
        let made = make_words(&mut pass, &keys, rows, false, SEED, &fault)?;
        let hashes = made.region.ok_or_else(|| pass.unsupported("keys"))?;
        pass.report(&fault, all_inside)?;
        let hashes = pass.array(UInt64, rows, &hashes)?;
        pass.finish()?;
        Ok(hashes)
    }))
}
