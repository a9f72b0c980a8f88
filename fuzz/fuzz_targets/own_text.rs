//! Edge lists and node tables in delimited text: a table or an error.
#![no_main]

use blnn::data::own::{ColumnNames, bytes};
use blnn_kernels::Threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let threads = Threads::new(1);
    for no_header in [false, true] {
        let columns = ColumnNames { no_header, ..ColumnNames::default() };
        let _ = bytes::edge_list(input, &columns, &threads);
        let _ = bytes::node_table(input, &columns, &threads);
    }
    let columns = ColumnNames { label: Some("2".into()), ..ColumnNames::default() };
    let _ = bytes::node_table(input, &columns, &threads);
});
