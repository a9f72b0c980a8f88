//! Parquet tables: a table or an error.
#![no_main]

use blnn::data::own::{ColumnNames, bytes};
use blnn_kernels::Threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    // The decoders panic over some damaged files; the library catches that, so libFuzzer must not
    // end the process first.
    init: std::panic::set_hook(Box::new(|_| ())),
    |input: &[u8]| {
        let columns = ColumnNames::default();
        let _ = bytes::parquet_edges(input, &columns, &Threads::new(1));
        let _ = bytes::parquet_nodes(input, &columns);
    }
);
