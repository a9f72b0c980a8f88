//! Stand-in.
use crate::error::Result;
use blnn_kernels::Matrix;
use std::path::Path;
pub(crate) fn write_matrix(path: &Path, m: &Matrix) -> Result<()> {
    crate::atomic::replace(path, |f| {
        let b: Vec<u8> = m.data().iter().flat_map(|v| v.to_le_bytes()).collect();
        f.write_all(&b)
    })
}
