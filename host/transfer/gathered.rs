//! Concatenates bytes of many buffers in device memory with one launch.
//!
//! The one idea: the kernel that copies what views point to does this too, if each piece becomes one view.

use bowstring_kernels::gather::copy::{COPY_VIEWS, CopyViews};
use bowstring_kernels::memory::In;
use bowstring_kernels::ranges::views::BufferRow;
use bowstring_kernels::target::find;

use crate::Result;
use crate::array::Buffer;
use crate::pass::{Pass, Region, Table};

/// The pieces to concatenate, in order.
#[derive(Default)]
pub(crate) struct Gathered {
    views: Vec<u64>,
    places: Vec<u64>,
    buffers: Table<BufferRow>,
    /// The total number of bytes so far.
    len: usize,
}

impl Gathered {
    /// Appends the first `bytes` bytes of a buffer.
    pub fn bytes(&mut self, from: &Buffer, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // Any length over 12 marks the bytes as outside of the view; the distance to the next row determines
        // their number.
        self.views.extend([13, self.buffers.len() as u64]);
        self.places.push(self.len as u64);
        let limit = bytes as u64;
        let (bytes, offset) = In::bitmap(from.address() as u64, limit, 0);
        self.buffers.push(&BufferRow { bytes, offset, limit });
        self.len = self.len.saturating_add(limit as usize);
    }

    /// Appends zeros up to byte `upto`.
    pub fn zeros(&mut self, upto: usize) {
        while self.len < upto {
            // A row of up to 12 bytes is inside its view.
            let bytes = (upto - self.len).min(12);
            self.views.extend([bytes as u64, 0]);
            self.places.push(self.len as u64);
            self.len += bytes;
        }
    }

    /// Launches the kernel and returns the concatenated bytes.
    pub fn launch(mut self, pass: &mut Pass) -> Result<Region> {
        let gathered = pass.rows(self.len, 1)?;
        if self.len == 0 {
            return Ok(gathered);
        }
        let rows = self.places.len();
        self.places.push(self.len as u64);
        let tables = pass.upload(&[&self.views[..], &self.places, self.buffers.words()].concat())?;
        let entry = find(COPY_VIEWS, &[8]).ok_or_else(|| pass.unsupported("gathering"))?;
        let (views_end, places_end) = (self.views.len() * 8, (self.views.len() + self.places.len()) * 8);
        let args = CopyViews {
            to: tables.part(views_end, places_end),
            views: tables.part(0, views_end),
            rows: rows as u64,
            buffers: tables.part(places_end, tables.bytes()),
            out: gathered.out(),
            len: self.len as u64,
        };
        pass.launch(entry, &args)?;
        Ok(gathered)
    }
}
