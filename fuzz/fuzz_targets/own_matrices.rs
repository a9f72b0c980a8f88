//! SciPy matrices and archives of whole graphs: a graph or an error.
#![no_main]

use blnn::data::own::bytes;
use blnn_kernels::Threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = bytes::scipy_matrix(input, &Threads::new(1));
    let _ = bytes::whole_graph(input);
});
