//! Checkpoints: a verified one or an error, and the tensors of a verified one can be taken.
#![no_main]

use std::path::Path;

use blnn::Checkpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut checkpoint) = Checkpoint::from_bytes(Path::new("fuzzed"), bytes) else {
        return;
    };
    let named: Vec<_> =
        checkpoint.tensors().map(|(name, tensor)| (name.to_owned(), tensor.shape())).collect();
    for (name, shape) in named {
        checkpoint.take(&name, shape).expect("a tensor that was listed");
    }
});
