//! Files of kinds that are well known and not read, with what to do about each.

use crate::error::{Error, ErrorKind, Result};

/// How such files begin, what they are, and the remedy.
const FOREIGN: [(&[u8], &str, &str); 10] = [
    (b"\xfd7zXZ\0", "is packed with xz", "unpack it with `unxz`, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "is packed with zstd", "unpack it with `unzstd`, or pack it with gzip"),
    (b"\x04\x22\x4d\x18", "is packed with lz4", "unpack it with `unlz4`, or pack it with gzip"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive", "unpack it and name the file in it"),
    (b"\x89HDF\r\n", "is an HDF5 file", "save its tables as csv or parquet"),
    (b"ARROW1\0\0", "is an Arrow (feather) file", "save it as parquet or csv"),
    (b"SQLite format 3\0", "is an SQLite database", "export its tables as csv"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel workbook", "save its sheets as csv"),
    (b"\x80\x04\x95", "is a Python pickle", "save tables with to_csv, arrays with numpy.save"),
    (b"\x80\x05\x95", "is a Python pickle", "save tables with to_csv, arrays with numpy.save"),
];

/// Refuses bytes that begin a file which is known and not read.
pub(super) fn refuse(start: &[u8]) -> Result<()> {
    let found = FOREIGN.iter().find(|(mark, ..)| start.starts_with(mark));
    let found = found.map(|&(_, what, remedy)| (what, remedy));
    let is_bzip2 = matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, ..]);
    let is_tar = start.get(257..262) == Some(b"ustar");
    let found = match found {
        None if is_bzip2 => {
            ("is packed with bzip2", "unpack it with `bunzip2`, or pack it with gzip")
        }
        None if is_tar => ("is a tar archive", "unpack it with `tar -xf` and name the file in it"),
        None => return Ok(()),
        Some(found) => found,
    };
    let (what, remedy) = found;
    Err(Error::new(ErrorKind::Parse, format!("{what}, which is not read; {remedy}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_and_not_read_has_a_remedy() {
        let mut tar = vec![b'x'; 257];
        tar.extend(b"ustar\0");
        for (start, wanted) in [
            (&b"BZh91AY&SY\x01"[..], "bzip2, which is not read; unpack it with `bunzip2`"),
            (b"\xfd7zXZ\0\0\x04", "`unxz`"),
            (b"\x28\xb5\x2f\xfd$", "`unzstd`"),
            (b"\x80\x04\x95\0", "Python pickle"),
            (&tar, "tar archive"),
        ] {
            let text = refuse(start).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn texts_that_look_alike_are_let_through() {
        for start in [&b"BZh9,x\n"[..], b"ARROW1,2\n", b"7z,8\n", b""] {
            refuse(start).unwrap();
        }
    }
}
