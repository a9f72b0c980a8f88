//! Replacing a file in one step, so that a reader, a crash or a full disk never leaves half of one.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};

/// How the names of temporary files begin and end.
const PREFIX: &str = ".blnn-";
const SUFFIX: &str = ".tmp";
/// No file takes so long to write.
const ABANDONED: Duration = Duration::from_hours(1);

/// Writes a file through `write` and puts it at `path` in one step.
///
/// The bytes go to a temporary file in the same folder, are forced to the disk, and the temporary
/// file is then renamed over `path`. If anything fails (the folder cannot be written to, the disk
/// is full, `write` itself returns an error) the temporary file is removed and whatever was at
/// `path` before stays as it was. Of a symbolic link the file is replaced that it leads to; a
/// device or a pipe cannot be replaced and is written into.
///
/// # Errors
/// If the folder is missing or not writable, the disk is full, or `write` fails.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("note.txt");
/// blnn::atomic::replace(&path, |out| out.write_all(b"whole or not at all"))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "whole or not at all");
/// # Ok(())
/// # }
/// ```
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<()> {
    let written = if is_special(path) {
        write_into(path, write)
    } else {
        let file = behind_links(path);
        replace_in(folder_of(&file), &file, write)
    };
    written.map_err(|e| Error::io("write", path, e))
}

/// Whether `path` is a device, a pipe or a socket.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

fn write_into(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(File::options().write(true).open(path)?);
    write(&mut out)?;
    out.flush()
}

/// The file that a symbolic link leads to; any other path as it is.
fn behind_links(path: &Path) -> PathBuf {
    let led = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
    led.unwrap_or_else(|| path.to_owned())
}

fn replace_in(
    folder: &Path,
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = temporary_file(folder)?;
    let mut out = BufWriter::new(temporary.as_file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    temporary.as_file().sync_all()?;
    temporary.persist(path)?;
    sync_folder(folder);
    Ok(())
}

/// Removes the temporary files of processes that were killed while they wrote to `folder`. Young
/// ones stay: another process may be writing them.
pub(crate) fn remove_leftovers(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
        let written = entry.metadata().and_then(|data| data.modified());
        let is_old = written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED));
        if ours && is_old {
            // What cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The folder that holds `path`.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private by default; a result is for whomever the umask lets read it.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Makes the rename itself survive a power cut. Not every file system can, and the file is whole
/// either way, so a refusal is no error.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::fs;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_devices_are_written_into() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, |out| out.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        replace(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
        assert!(is_special(Path::new("/dev/null")), "still the device");
    }

    #[test]
    fn replaces_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        fs::write(&path, "an older and longer content").unwrap();
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - 2 * ABANDONED;
        for (name, time) in [
            (".blnn-old.tmp", Some(old)),
            (".blnn-young.tmp", None),
            ("mine.tmp", Some(old)),
            ("model.bin", Some(old)),
        ] {
            let file = File::create(folder.path().join(name)).unwrap();
            if let Some(time) = time {
                file.set_modified(time).unwrap();
            }
        }
        remove_leftovers(folder.path());
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, [".blnn-young.tmp", "mine.tmp", "model.bin"]);
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        fs::write(&path, "old").unwrap();
        let error = replace(&path, |out| {
            out.write_all(&vec![0; 100_000])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("a.bin"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent").join("a.bin");
        let error = replace(&path, |out| out.write_all(b"x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("absent"), "{error}");
    }

    #[test]
    fn a_bare_file_name_means_the_current_folder() {
        assert_eq!(folder_of(Path::new("a.bin")), Path::new("."));
        assert_eq!(folder_of(Path::new("x/a.bin")), Path::new("x"));
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_the_file_where_the_umask_lets_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "x").unwrap();
        let ours = folder.path().join("ours");
        replace(&ours, |out| out.write_all(b"x")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
