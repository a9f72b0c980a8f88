//! `.npy` arrays: an array or an error, and what is read is written back the same.
#![no_main]

use blnn::data::npy::{self, Values};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(array) = npy::from_bytes(bytes) else {
        return;
    };
    if let Values::Int(values) = array.values() {
        let mut written = Vec::new();
        npy::write_i64(&mut written, values).expect("memory takes every byte");
        let back = npy::from_bytes(&written).expect("our own file");
        assert_eq!(back.values(), array.values());
    }
    let _ = array.clone().into_matrix();
    let _ = array.into_text();
});
