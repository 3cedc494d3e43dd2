//! Ends a pass, also one that an error ends early. The pass records its event after all its work on the
//! stream, and keeps everything that the work uses until the event has occurred.

use super::Pass;
use crate::Result;
use crate::device::Check;

impl Pass {
    /// Ends the pass: records its event, and keeps its inputs until the event has occurred.
    pub fn finish(mut self) -> Result<()> {
        if self.ended { Ok(()) } else { self.end() }
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.ended = true;
        if self.gpu.is_parents() {
            // The runtime does not work in a forked child, and locks may be held for ever.
            self.used.drain(..).for_each(std::mem::forget);
            self.kept.drain(..).for_each(std::mem::forget);
            std::mem::forget(std::mem::take(&mut self.small_uploads));
            return Ok(());
        }
        let sent = self.send();
        self.kept.extend(self.small_uploads.end());
        let checks = std::mem::take(&mut self.checks);
        let check: Option<Check> = (!checks.is_empty())
            .then(|| -> Check { Box::new(move || checks.into_iter().try_for_each(|check| check())) });
        let (parents, looked_at) = (std::mem::take(&mut self.parents), std::mem::take(&mut self.looked_at));
        self.done.depends_on(parents, check, looked_at);
        // A clone, because the pass itself is borrowed mutably meanwhile.
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
            // No caller has its outputs, and the original error is already being returned.
            let _ = self.end();
        }
    }
}
