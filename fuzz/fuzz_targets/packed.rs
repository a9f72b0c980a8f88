//! The packed format of the embedded graph, behind its compression and in front of it.
#![no_main]

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = blnn::data::cora::from_bytes("fuzz", bytes);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"blnn packed 1\n").expect("memory takes every byte");
    packed.write_all(bytes).expect("memory takes every byte");
    let packed = packed.finish().expect("memory takes every byte");
    let _ = blnn::data::cora::from_bytes("fuzz", &packed);
});
