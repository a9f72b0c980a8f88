//! Embeddings in any format: a matrix or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    // The decoders of parquet panic over some damaged files; the library catches that, so
    // libFuzzer must not end the process first.
    init: std::panic::set_hook(Box::new(|_| ())),
    |input: &[u8]| {
        if let Ok(vectors) = blnn::vectors::from_bytes(input) {
            let rows = vectors.matrix.rows();
            assert!(vectors.ids.is_none_or(|ids| ids.len() == rows));
        }
    }
);
