//! Stand-in.
use crate::error::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Writes a file next to `path`, then renames it over `path`.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let run = || -> std::io::Result<()> {
        let mut temp = tempfile::NamedTempFile::new_in(folder)?;
        write(temp.as_file_mut())?;
        temp.persist(path)?;
        Ok(())
    };
    run().map_err(|e| Error::io("write", path, e))
}
