//! Ends a pass, also one that an error ends early. The pass records its event after all its work on the
//! stream, and keeps everything that the work uses until the event has occurred.

use std::sync::atomic::Ordering;

use super::Pass;
use crate::Result;
use crate::device::{Check, OwnedStream};

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
        if self.queue.owned().is_captured_now() {
            return self.end_in_a_capture();
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

    /// Ends a pass whose stream others have begun to capture, without a call on the stream: that would become
    /// part of their graph. The work queued before ends with the last event within the pass. If some came
    /// later, nothing says when it has passed, and what it uses stays for ever.
    fn end_in_a_capture(&mut self) -> Result<()> {
        let refused = OwnedStream::refusal(self.operation);
        self.done.give_up(refused.clone());
        self.kept.extend(self.small_uploads.end());
        if self.is_ahead.load(Ordering::Relaxed) {
            self.used.drain(..).for_each(std::mem::forget);
            self.kept.drain(..).for_each(std::mem::forget);
        } else if let Some(seen) = &self.seen {
            self.used.drain(..).for_each(|memory| memory.used_until(seen));
            self.gpu.keep(self.queue.number(), seen, std::mem::take(&mut self.kept));
        }
        Err(refused)
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
