//! WikiCS files: a graph or an error, under both recipes.
#![no_main]

use blnn::data::wikics::{self, RowNormalisation};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = wikics::from_bytes("fuzz", bytes, RowNormalisation::Shifted);
    let _ = wikics::from_bytes("fuzz", bytes, RowNormalisation::Unshifted);
});
