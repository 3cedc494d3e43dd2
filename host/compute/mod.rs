//! L5: the operations: check the arguments, choose the device's way, launch.
//!
//! Every operation takes its arrays and, last, the [`crate::Stream`] it runs on. Arrays on another device than the
//! stream's are [`crate::Error::Invalid`].
