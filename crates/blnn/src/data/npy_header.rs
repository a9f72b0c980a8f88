//! The header of a `.npy` file: which values follow, and how many.

use std::io::{self, Read, Write};

use crate::data::npy::damaged;
use crate::error::{Error, ErrorKind, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Headers are a line of text; NumPy itself refuses longer ones.
const MAX_HEADER: usize = 10_000;
/// NumPy starts the values at a multiple of this.
const ALIGNMENT: usize = 64;

/// The type of the values, little-endian throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F16,
    F32,
    F64,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// UTF-32 texts of `chars` code points each.
    Text {
        chars: usize,
    },
    /// Texts of `bytes` bytes each, in ASCII.
    Ascii {
        bytes: usize,
    },
    /// Pickled Python objects, which are never read.
    Object,
}

impl Dtype {
    fn parse(descr: &str) -> Result<Self> {
        if descr.starts_with('>') {
            let message = format!("dtype {descr} is big-endian; save the array as little-endian");
            return Err(parse(message));
        }
        let code = descr.trim_start_matches(['<', '|', '=']);
        let unknown = || {
            let known = "float16, float32, float64, bool, integers or unicode text";
            parse(format!("dtype {descr} is not supported; save the array as {known}"))
        };
        Ok(match code {
            "f2" => Self::F16,
            "f4" => Self::F32,
            "f8" => Self::F64,
            "b1" => Self::Bool,
            "i1" => Self::I8,
            "i2" => Self::I16,
            "i4" => Self::I32,
            "i8" => Self::I64,
            "u1" => Self::U8,
            "u2" => Self::U16,
            "u4" => Self::U32,
            "u8" => Self::U64,
            _ if code.starts_with('O') => Self::Object,
            _ if code.starts_with('S') => {
                let bytes = code[1..].parse().ok().filter(|&n| n >= 1);
                Self::Ascii { bytes: bytes.ok_or_else(unknown)? }
            }
            _ => {
                let chars = code.strip_prefix('U').and_then(|n| n.parse().ok());
                let chars = chars.filter(|&n| (1..=usize::MAX / 4).contains(&n));
                Self::Text { chars: chars.ok_or_else(unknown)? }
            }
        })
    }

    /// Bytes a value.
    fn width(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::Object => 8,
            Self::Text { chars } => 4 * chars,
            Self::Ascii { bytes } => bytes,
        }
    }

    fn descr(self) -> String {
        match self {
            Self::F16 => "<f2".into(),
            Self::F32 => "<f4".into(),
            Self::F64 => "<f8".into(),
            Self::Bool => "|b1".into(),
            Self::I8 => "|i1".into(),
            Self::I16 => "<i2".into(),
            Self::I32 => "<i4".into(),
            Self::I64 => "<i8".into(),
            Self::U8 => "|u1".into(),
            Self::U16 => "<u2".into(),
            Self::U32 => "<u4".into(),
            Self::U64 => "<u8".into(),
            Self::Text { chars } => format!("<U{chars}"),
            Self::Ascii { bytes } => format!("|S{bytes}"),
            Self::Object => "|O".into(),
        }
    }
}

/// What a `.npy` file says of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dtype: Dtype,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
    /// Bytes before the first value.
    length: u64,
}

impl Header {
    /// The header of a row-major array about to be written.
    pub(crate) fn new(dtype: Dtype, shape: Vec<usize>) -> Self {
        Self { dtype, fortran_order: false, shape, length: 0 }
    }

    /// Reads everything up to the first value.
    pub(crate) fn read(source: &mut impl Read) -> Result<Self> {
        let mut start = [0; 8];
        source.read_exact(&mut start).map_err(|e| damaged(&e))?;
        if &start[..6] != MAGIC {
            return Err(parse("is not a .npy array: it does not begin with \\x93NUMPY"));
        }
        let width = if start[6] == 1 { 2 } else { 4 };
        let mut size = [0; 4];
        source.read_exact(&mut size[..width]).map_err(|e| damaged(&e))?;
        let size = u32::from_le_bytes(size) as usize;
        if !(1..=3).contains(&start[6]) || size > MAX_HEADER {
            let message = format!("has a .npy header of version {} and {size} bytes", start[6]);
            return Err(parse(message));
        }
        let mut text = vec![0; size];
        source.read_exact(&mut text).map_err(|e| damaged(&e))?;
        let text = std::str::from_utf8(&text).map_err(|_| parse("the header is not text"))?;
        Self::from_dict(text, (8 + width + size) as u64)
    }

    /// Reads the Python dictionary that NumPy writes: three known keys, in any order.
    fn from_dict(text: &str, length: u64) -> Result<Self> {
        let malformed = |key: &str| parse(format!("the header has no readable `{key}`: {text}"));
        let value = |key: &str| value_of(text, key).ok_or_else(|| malformed(key));
        let descr = value("descr")?;
        let descr = quoted(descr)
            .ok_or_else(|| parse("is a structured array; save its columns as separate arrays"))?;
        let order = value("fortran_order")?;
        let fortran_order = order.starts_with("True");
        if !fortran_order && !order.starts_with("False") {
            return Err(malformed("fortran_order"));
        }
        let shape = tuple(value("shape")?).ok_or_else(|| malformed("shape"))?;
        Ok(Self { dtype: Dtype::parse(descr)?, fortran_order, shape, length })
    }

    /// The number of values, provided that header and values together are `available` bytes.
    pub(crate) fn count_within(&self, available: u64) -> Result<usize> {
        let product = |total: usize, &axis: &usize| total.checked_mul(axis);
        let count = self.shape.iter().try_fold(1usize, product);
        let bytes = count.and_then(|count| count.checked_mul(self.dtype.width()));
        // Without values no bytes vouch for the other axis, and whoever counts its rows never ends.
        let endless = count == Some(0) && self.shape.iter().any(|&axis| axis > u32::MAX as usize);
        let (Some(count), Some(bytes), false) = (count, bytes, endless) else {
            return Err(parse(format!("the shape {:?} is too large", self.shape)));
        };
        let present = available.saturating_sub(self.length);
        if self.dtype != Dtype::Object && bytes as u64 != present {
            return Err(parse(format!(
                "shape {:?} needs {bytes} bytes of values, {present} are there; \
                 the file is cut short or damaged",
                self.shape
            )));
        }
        Ok(count)
    }

    /// Writes everything up to the first value, padded as NumPy does.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let axes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let comma = if axes.len() == 1 { "," } else { "" };
        let (descr, shape) = (self.dtype.descr(), axes.join(", ") + comma);
        let mut dict =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
        let unpadded = 10 + dict.len() + 1;
        let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
        dict.extend(std::iter::repeat_n(' ', padding));
        dict.push('\n');
        out.write_all(MAGIC)?;
        out.write_all(&[1, 0])?;
        // Our dtypes and at most two axes make a line far below 64 KiB.
        out.write_all(&(dict.len() as u16).to_le_bytes())?;
        out.write_all(dict.as_bytes())
    }
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

/// What follows `'key':` in the dictionary.
fn value_of<'a>(dict: &'a str, key: &str) -> Option<&'a str> {
    let single = format!("'{key}'");
    let double = format!("\"{key}\"");
    let (_, rest) = dict.split_once(&single).or_else(|| dict.split_once(&double))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// The text between the quotes at the start of `value`.
fn quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|c| "'\"".contains(*c))?;
    value[1..].split_once(quote).map(|(inside, _)| inside)
}

/// The numbers of a tuple such as `(2, 3)`, `(5,)` or `()` at the start of `value`.
fn tuple(value: &str) -> Option<Vec<usize>> {
    let (inside, _) = value.strip_prefix('(')?.split_once(')')?;
    let parts = inside.split(',').map(str::trim).filter(|part| !part.is_empty());
    // NumPy on Python 2 wrote long integers as `5L`.
    parts.map(|part| part.trim_end_matches('L').parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dict(text: &str) -> Result<Header> {
        Header::from_dict(text, 0)
    }

    #[test]
    fn dictionaries_are_read_in_any_order_and_quote() {
        let header = dict("{\"shape\": (2, 3), 'fortran_order':True, 'descr': \"<U12\"}").unwrap();
        assert_eq!(header.dtype, Dtype::Text { chars: 12 });
        assert_eq!((header.shape, header.fortran_order), (vec![2, 3], true));
        let header = dict("{'descr': '<i8', 'fortran_order': False, 'shape': (5L,), }").unwrap();
        assert_eq!((header.dtype, header.shape), (Dtype::I64, vec![5]));
    }

    #[test]
    fn malformed_dictionaries_are_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '",
            "{'descr': '<U99999999999999999999', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '<U9999999999999999999', 'fortran_order': False, 'shape': (1,)}",
        ] {
            assert!(dict(text).is_err(), "{text}");
        }
    }

    #[test]
    fn versions_and_lengths_are_checked() {
        let bad = |bytes: &[u8]| Header::read(&mut &bytes[..]).unwrap_err().to_string();
        assert!(bad(b"\x93NUMPY\x09\x00\x02\x00\x00\x00{}").contains("version 9"));
        assert!(bad(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}").contains("4294967295 bytes"));
        assert!(bad(b"\x93NUMPY\x01\x00\x40\x00{}").contains("cut short"));
        assert!(bad(b"PK\x03\x04....").contains("not a .npy array"));
    }

    /// The line NumPy 2 writes for `np.zeros((2, 3), dtype=np.float32)`.
    #[test]
    fn written_headers_follow_numpy() {
        let mut bytes = Vec::new();
        Header::new(Dtype::F32, vec![2, 3]).write(&mut bytes).unwrap();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let dict = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   ";
        assert!(bytes[10..].starts_with(dict) && bytes.ends_with(b" \n"));
        let header = Header::read(&mut &bytes[..]).unwrap();
        assert_eq!((header.dtype, header.shape), (Dtype::F32, vec![2, 3]));
        assert_eq!(header.length, 128);
    }
}
