//! How a pass ends, also one that an error ends half-way: its event is recorded behind what it has put on the stream, and
//! whatever that uses is kept until the event has passed.

use super::Pass;
use crate::Result;
use crate::device::Check;

impl Pass {
    /// Ends the pass: its event is recorded, and inputs are kept until it has passed.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let sent = self.send();
        self.kept.extend(self.small_uploads.end());
        let checks = std::mem::take(&mut self.checks);
        let check: Option<Check> = (!checks.is_empty())
            .then(|| -> Check { Box::new(move || checks.into_iter().try_for_each(|check| check())) });
        let (parents, looked_at) = (std::mem::take(&mut self.parents), std::mem::take(&mut self.looked_at));
        self.done.depends_on(parents, check, looked_at);
        // Not `self.queue`'s: the pass is borrowed meanwhile.
        let queue = self.queue.clone();
        let ending = queue.ending();
        let recorded = self.done.record(self.queue.owned());
        for memory in self.used.drain(..) {
            memory.used_until(&self.done);
        }
        drop(ending);
        self.gpu.keep(self.queue.number(), &self.done, std::mem::take(&mut self.kept));
        recorded.and_then(|()| self.queue.leave(&self.done)).and(sent)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody has its outputs, and the error that led here is already on its way.
            let _ = self.end();
        }
    }
}
