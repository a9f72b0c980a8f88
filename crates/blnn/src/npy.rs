//! Stand-in.
use blnn_kernels::Matrix;
use std::io::{self, Write};
pub(crate) fn write_f32_matrix(out: &mut dyn Write, m: &Matrix) -> io::Result<()> {
    let b: Vec<u8> = m.data().iter().flat_map(|v| v.to_le_bytes()).collect();
    out.write_all(&b)
}
