//! The Python module of bowstring.
//!
//! An [`array::Array`] is a library array with its field. Everything else implements protocols: the Arrow
//! methods in `capsule.rs`, DLPack in `tensor.rs`, and the CUDA array interface in `cuda.rs`. These files and
//! `device.rs` hold all `unsafe` code. Calls that may wait or compute release the interpreter meanwhile.

mod array;
mod batch;
mod capsule;
mod construct;
mod cuda;
mod device;
mod doctor;
mod error;
mod expr;
mod expressions;
mod foreign;
mod host_rows;
mod infer;
mod ipc;
mod items;
mod listed;
mod methods;
mod operations;
mod pace;
mod pickle;
mod plain;
mod protocols;
mod reader;
mod recipe;
mod shown;
mod source;
mod tensor;
mod times;
mod to_python;
mod types;
mod validate;
mod values;

use pyo3::prelude::*;

// Objects of other libraries are taken from where they lie, which nothing but the interpreter's lock guards.
#[pymodule(gil_used = true)]
mod _bowstring {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::array::Array;
    #[pymodule_export]
    use super::batch::RecordBatch;
    #[pymodule_export]
    use super::construct::{array, chunks, record_batch};
    #[pymodule_export]
    use super::cuda::{cuda_interface, from_cuda_array_interface};
    #[pymodule_export]
    use super::device::{Device, Stream};
    #[pymodule_export]
    use super::doctor::{Report, doctor, examine_apart, examine_only};
    #[pymodule_export]
    use super::expr::{Aggregation, Expr, col, count_all, if_else, lit, nth};
    #[pymodule_export]
    use super::expressions::{aggregate, evaluate};
    #[pymodule_export]
    use super::operations::{
        GroupBy, JoinTable, ReaderGroupBy, Windows, cast, concat, drop_null, fill_null, filter, is_null,
        is_valid, join, logical_null_count, null_count, partition, partition_by_hash, rank, sort,
        sort_indices, take, unique, value_counts, windows,
    };
    #[pymodule_export]
    use super::pickle::unpickle;
    #[pymodule_export]
    use super::reader::BatchReader;
    #[pymodule_export]
    use super::tensor::from_dlpack;
    #[pymodule_export]
    use super::types::{DataType, Field, Schema};

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::error::keep_panics_off_stderr();
        Ok(())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
