//! Device kernels: every body is written once and built for each GPU target and for the host.
#![no_std]
