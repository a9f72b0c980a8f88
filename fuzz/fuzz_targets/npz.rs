//! gnn-benchmark archives: a graph or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(graph) = blnn::data::npz::from_bytes("fuzz", bytes) {
        let _ = graph.edge_homophily();
    }
});
