//! NumPy's `.npy` arrays: a short header, then the values.
//!
//! ```text
//! \x93NUMPY 1 0 | header length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } \n | 6 × f32
//! ```
//!
//! Little-endian `float16`, `float32`, `float64`, `bool`, unicode and ASCII text and integers of every width are read;
//! `float32`, `int64` and unicode text are written. Pickled object arrays are never opened: a
//! pickle runs code. No size in a header is believed before it is compared with the bytes at hand.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use blnn_kernels::Matrix;

use crate::data::npy_header::{Dtype, Header};
use crate::error::{Error, ErrorKind, Result};

/// Values are decoded in blocks of about this many bytes.
const BLOCK: usize = 1 << 16;

/// An array: its shape, and its values in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    values: Values,
}

/// The values of an [`Array`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// `float32`, or `float16` widened.
    F32(Vec<f32>),
    /// `float64`.
    F64(Vec<f64>),
    /// Signed and unsigned integers of every width.
    Int(Vec<i64>),
    /// `bool`.
    Bool(Vec<bool>),
    /// Unicode text.
    Text(Vec<String>),
}

impl Values {
    fn name(&self) -> &'static str {
        match self {
            Self::F32(_) => "float32",
            Self::F64(_) => "float64",
            Self::Int(_) => "integer",
            Self::Bool(_) => "bool",
            Self::Text(_) => "unicode text",
        }
    }
}

impl Array {
    /// The length of each axis; none for a single value.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values in row-major order.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The values as `float32`: floats are rounded, integers and booleans converted.
    ///
    /// # Errors
    /// If the array holds text.
    pub fn into_f32(self) -> Result<Vec<f32>> {
        match self.values {
            Values::F32(values) => Ok(values),
            Values::F64(values) => Ok(values.into_iter().map(|v| v as f32).collect()),
            Values::Int(values) => Ok(values.into_iter().map(|v| v as f32).collect()),
            Values::Bool(values) => {
                Ok(values.into_iter().map(|v| f32::from(u8::from(v))).collect())
            }
            other @ Values::Text(_) => Err(wrong_dtype(&other, "numbers")),
        }
    }

    /// The values as integers.
    ///
    /// # Errors
    /// If the array holds anything else: a float is not silently cut to an index.
    pub fn into_int(self) -> Result<Vec<i64>> {
        match self.values {
            Values::Int(values) => Ok(values),
            other => Err(wrong_dtype(&other, "integers")),
        }
    }

    /// The values as text.
    ///
    /// # Errors
    /// If the array holds anything else.
    pub fn into_text(self) -> Result<Vec<String>> {
        match self.values {
            Values::Text(values) => Ok(values),
            other => Err(wrong_dtype(&other, "unicode text")),
        }
    }

    /// The values as a matrix.
    ///
    /// # Errors
    /// If the array has not two axes, or holds text.
    pub fn into_matrix(self) -> Result<Matrix> {
        let [rows, cols] = self.shape[..] else {
            let message = format!("the array has {} axes, a matrix has 2", self.shape.len());
            return Err(Error::new(ErrorKind::Shape, message));
        };
        Ok(Matrix::from_vec(rows, cols, self.into_f32()?))
    }
}

fn wrong_dtype(values: &Values, wanted: &str) -> Error {
    let found = values.name();
    parse(format!("holds {found}, expected {wanted}"))
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

/// Reads the array in the bytes of a `.npy` file.
///
/// # Errors
/// If the bytes are not a whole `.npy` array of a known dtype.
///
/// # Examples
/// ```
/// use blnn::data::npy;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut bytes = Vec::new();
/// npy::write_i64(&mut bytes, &[3, -1])?;
/// assert_eq!(npy::from_bytes(&bytes)?.into_int()?, [3, -1]);
/// assert!(npy::from_bytes(&bytes[..90]).is_err());
/// # Ok(())
/// # }
/// ```
pub fn from_bytes(bytes: &[u8]) -> Result<Array> {
    read(bytes, bytes.len() as u64)
}

/// Reads the `.npy` file at `path`.
///
/// # Errors
/// If the file cannot be read, or is not a whole `.npy` array of a known dtype.
pub fn read_file(path: &Path) -> Result<Array> {
    let file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    let length = file.metadata().map_err(|e| Error::io("read", path, e))?.len();
    read(BufReader::new(file), length).map_err(|e| e.at(path.display()))
}

/// Reads an array from a source known to hold `available` bytes, all of them.
pub(crate) fn read(mut source: impl Read, available: u64) -> Result<Array> {
    let header = Header::read(&mut source)?;
    read_values(&header, source, available)
}

/// Reads the values that follow `header`, of a source that held `available` bytes in all.
pub(crate) fn read_values(header: &Header, mut source: impl Read, available: u64) -> Result<Array> {
    let count = header.count_within(available)?;
    let values = decode(header.dtype, &mut source, count)?;
    // A compressed source verifies its checksum only when it is read to its end.
    let rest = source.read(&mut [0]).map_err(|e| damaged(&e))?;
    if rest != 0 {
        return Err(parse("there are bytes after the last value"));
    }
    let values = if header.fortran_order { row_major(values, &header.shape)? } else { values };
    Ok(Array { shape: header.shape.clone(), values })
}

fn decode(dtype: Dtype, source: &mut impl Read, count: usize) -> Result<Values> {
    Ok(match dtype {
        Dtype::F16 => Values::F32(decode_fixed(source, count, |b| Ok(widened(b)))?),
        Dtype::F32 => Values::F32(decode_fixed(source, count, |b| Ok(f32::from_le_bytes(b)))?),
        Dtype::F64 => Values::F64(decode_fixed(source, count, |b| Ok(f64::from_le_bytes(b)))?),
        Dtype::Bool => Values::Bool(decode_fixed(source, count, |[b]| Ok(b != 0))?),
        Dtype::I8 => Values::Int(decode_fixed(source, count, |b| Ok(i8::from_le_bytes(b).into()))?),
        Dtype::I16 => {
            Values::Int(decode_fixed(source, count, |b| Ok(i16::from_le_bytes(b).into()))?)
        }
        Dtype::I32 => {
            Values::Int(decode_fixed(source, count, |b| Ok(i32::from_le_bytes(b).into()))?)
        }
        Dtype::I64 => Values::Int(decode_fixed(source, count, |b| Ok(i64::from_le_bytes(b)))?),
        Dtype::U8 => Values::Int(decode_fixed(source, count, |[b]| Ok(b.into()))?),
        Dtype::U16 => {
            Values::Int(decode_fixed(source, count, |b| Ok(u16::from_le_bytes(b).into()))?)
        }
        Dtype::U32 => {
            Values::Int(decode_fixed(source, count, |b| Ok(u32::from_le_bytes(b).into()))?)
        }
        Dtype::U64 => Values::Int(decode_fixed(source, count, signed)?),
        Dtype::Text { chars } => Values::Text(decode_items(source, count, 4 * chars, text)?),
        Dtype::Ascii { bytes } => Values::Text(decode_items(source, count, bytes, ascii)?),
        Dtype::Object => return Err(pickled()),
    })
}

/// What is said of an array of Python objects.
pub(crate) fn pickled() -> Error {
    parse(
        "is a pickled array of Python objects, which is never opened because a pickle runs code; \
         save it with a number or unicode dtype",
    )
}

/// The value of a `float16`, which every `float32` can hold.
fn widened(bytes: [u8; 2]) -> f32 {
    const EXPONENT: u16 = 0x7c00;
    let bits = u16::from_le_bytes(bytes);
    let sign = u32::from(bits & 0x8000) << 16;
    let fields = u32::from(bits & 0x7fff) << 13;
    let magnitude = if bits & EXPONENT == EXPONENT {
        fields | 0x7f80_0000
    } else {
        // Exponents count from -15 there and from -127 here; a product makes up for it, also where
        // a number has no leading one.
        (f32::from_bits(fields) * 2.0_f32.powi(127 - 15)).to_bits()
    };
    f32::from_bits(sign | magnitude)
}

fn signed(bytes: [u8; 8]) -> Result<i64> {
    let value = u64::from_le_bytes(bytes);
    value.try_into().map_err(|_| parse(format!("{value} is too large an integer")))
}

/// UTF-32, padded with zeros at the end.
fn text(bytes: &[u8]) -> Result<String> {
    let codes = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let text: Option<String> = codes.map(char::from_u32).collect();
    let text = text.ok_or_else(|| parse("holds text that is not valid unicode"))?;
    Ok(text.trim_end_matches('\0').to_owned())
}

/// ASCII, padded with zeros at the end.
fn ascii(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
    let text = text.ok_or_else(|| parse("holds bytes that are not ASCII; save them as unicode"))?;
    Ok(text.trim_end_matches('\0').to_owned())
}

fn decode_fixed<T, const N: usize>(
    source: &mut impl Read,
    count: usize,
    value: impl Fn([u8; N]) -> Result<T>,
) -> Result<Vec<T>> {
    decode_items(source, count, N, |bytes| {
        let mut item = [0; N];
        item.copy_from_slice(bytes);
        value(item)
    })
}

/// Decodes `count` items of `width` bytes each, a block at a time.
fn decode_items<T>(
    source: &mut impl Read,
    count: usize,
    width: usize,
    value: impl Fn(&[u8]) -> Result<T>,
) -> Result<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut values = Vec::new();
    let too_large = |_| parse(format!("{count} values do not fit into memory"));
    values.try_reserve_exact(count).map_err(too_large)?;
    let per_block = (BLOCK / width).clamp(1, count);
    let mut block = vec![0; per_block * width];
    while values.len() < count {
        let items = per_block.min(count - values.len());
        let bytes = &mut block[..items * width];
        source.read_exact(bytes).map_err(|e| damaged(&e))?;
        for item in bytes.chunks_exact(width) {
            values.push(value(item)?);
        }
    }
    Ok(values)
}

pub(crate) fn damaged(cause: &io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => parse("the data end too early; the file is cut short"),
        _ => parse(format!("the data cannot be read ({cause}); the file is damaged")),
    }
}

/// Turns column-major values of a matrix into row-major ones.
fn row_major(values: Values, shape: &[usize]) -> Result<Values> {
    let (rows, cols) = match shape {
        [] | [_] => return Ok(values),
        &[rows, cols] => (rows, cols),
        _ => {
            return Err(parse("is in Fortran order with more than 2 axes; save it in C order"));
        }
    };
    Ok(match values {
        Values::F32(v) => Values::F32(reorder(&v, rows, cols)),
        Values::F64(v) => Values::F64(reorder(&v, rows, cols)),
        Values::Int(v) => Values::Int(reorder(&v, rows, cols)),
        Values::Bool(v) => Values::Bool(reorder(&v, rows, cols)),
        Values::Text(v) => Values::Text(reorder(&v, rows, cols)),
    })
}

fn reorder<T: Clone>(values: &[T], rows: usize, cols: usize) -> Vec<T> {
    if values.is_empty() {
        return Vec::new();
    }
    let cells = (0..rows).flat_map(|i| (0..cols).map(move |j| j * rows + i));
    cells.map(|k| values[k].clone()).collect()
}

/// Writes a `float32` matrix.
///
/// # Errors
/// If `out` refuses the bytes.
///
/// # Examples
/// ```
/// use blnn::{Matrix, data::npy};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let matrix = Matrix::from_vec(1, 2, vec![0.5, -1.0]);
/// let mut bytes = Vec::new();
/// npy::write_f32_matrix(&mut bytes, &matrix)?;
/// assert_eq!(npy::from_bytes(&bytes)?.into_matrix()?, matrix);
/// # Ok(())
/// # }
/// ```
pub fn write_f32_matrix(out: &mut dyn Write, matrix: &Matrix) -> io::Result<()> {
    Header::new(Dtype::F32, vec![matrix.rows(), matrix.cols()]).write(out)?;
    write_words(out, matrix.data(), f32::to_le_bytes)
}

/// Writes a vector of `int64`.
///
/// # Errors
/// If `out` refuses the bytes.
pub fn write_i64(out: &mut dyn Write, values: &[i64]) -> io::Result<()> {
    Header::new(Dtype::I64, vec![values.len()]).write(out)?;
    write_words(out, values, i64::to_le_bytes)
}

/// Writes a vector of unicode texts, each as wide as the longest of them.
///
/// NumPy cannot tell zero characters at the end of a text from its padding: they get lost.
///
/// # Errors
/// If `out` refuses the bytes.
pub fn write_text<S: AsRef<str>>(out: &mut dyn Write, values: &[S]) -> io::Result<()> {
    let widths = values.iter().map(|text| text.as_ref().chars().count());
    let chars = widths.max().unwrap_or(0).max(1);
    Header::new(Dtype::Text { chars }, vec![values.len()]).write(out)?;
    let mut item = Vec::with_capacity(chars);
    for text in values {
        item.clear();
        item.extend(text.as_ref().chars().map(u32::from));
        item.resize(chars, 0);
        write_words(out, &item, u32::to_le_bytes)?;
    }
    Ok(())
}

/// Writes the bytes of `words`, a block at a time.
fn write_words<T: Copy, const N: usize>(
    out: &mut dyn Write,
    words: &[T],
    bytes: fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK);
    for chunk in words.chunks(BLOCK / N) {
        block.clear();
        block.extend(chunk.iter().flat_map(|&word| bytes(word)));
        out.write_all(&block)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with the given dtype, order and shape around `data`.
    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let dict =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn message(bytes: &[u8]) -> String {
        let error = from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parse);
        error.to_string()
    }

    #[test]
    fn halves_have_the_values_numpy_gives_them() {
        let mut bytes = Vec::new();
        Header::new(Dtype::F16, vec![8]).write(&mut bytes).unwrap();
        for half in [0x3c00, 0xc000, 0x0001, 0x03ff, 0x7bff, 0x3555, 0xfc00, 0x8000_u16] {
            bytes.extend(half.to_le_bytes());
        }
        let values = from_bytes(&bytes).unwrap().into_f32().unwrap();
        let wanted = [
            1.0,
            -2.0,
            5.960_464_5e-8,
            6.097_555e-5,
            65504.0,
            0.333_251_95,
            f32::NEG_INFINITY,
            -0.0,
        ];
        assert_eq!(values, wanted);
        assert!(values[7].is_sign_negative());
        assert!(widened([0x01, 0x7c]).is_nan());
    }

    #[test]
    fn every_integer_width_is_read() {
        let int = |descr, data: &[u8]| {
            from_bytes(&file(descr, "False", "(1,)", data)).unwrap().into_int().unwrap()[0]
        };
        assert_eq!(int("|i1", &[0xff]), -1);
        assert_eq!(int("|u1", &[0xff]), 255);
        assert_eq!(int("<i2", &[0xfe, 0xff]), -2);
        assert_eq!(int("<u2", &[0xfe, 0xff]), 65_534);
        assert_eq!(int("<i4", &(-7i32).to_le_bytes()), -7);
        assert_eq!(int("<u4", &u32::MAX.to_le_bytes()), i64::from(u32::MAX));
        assert_eq!(int("<i8", &i64::MIN.to_le_bytes()), i64::MIN);
        assert_eq!(int("<u8", &7u64.to_le_bytes()), 7);
        let text = message(&file("<u8", "False", "(1,)", &u64::MAX.to_le_bytes()));
        assert!(text.contains("too large an integer"), "{text}");
    }

    #[test]
    fn floats_booleans_and_scalars_are_read() {
        let wide = file("<f8", "False", "(2,)", &[1.5f64, -2.0].map(f64::to_le_bytes).concat());
        assert_eq!(from_bytes(&wide).unwrap().into_f32().unwrap(), [1.5, -2.0]);
        let flags = from_bytes(&file("|b1", "False", "(2,)", &[1, 0])).unwrap();
        assert_eq!(flags.values(), &Values::Bool(vec![true, false]));
        assert_eq!(flags.into_f32().unwrap(), [1.0, 0.0]);
        let scalar = from_bytes(&file("<i4", "False", "()", &[5, 0, 0, 0])).unwrap();
        assert_eq!((scalar.shape(), scalar.values()), (&[][..], &Values::Int(vec![5])));
    }

    #[test]
    fn fortran_order_becomes_row_major() {
        let data: Vec<u8> = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].map(f32::to_le_bytes).concat();
        let array = from_bytes(&file("<f4", "True", "(2, 3)", &data)).unwrap();
        let matrix = array.into_matrix().unwrap();
        assert_eq!(matrix, Matrix::from_vec(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let cube = file("<f4", "True", "(2, 3, 1)", &data);
        assert!(message(&cube).contains("C order"));
    }

    #[test]
    fn wrong_types_are_refused_by_name() {
        assert!(message(&file("|O", "False", "(1,)", b"\x80\x04.")).contains("pickled"));
        assert!(message(&file(">f4", "False", "(1,)", &[0; 4])).contains("big-endian"));
        assert!(message(&file("<c8", "False", "(1,)", &[0; 8])).contains("<c8"));
        let floats = file("<f4", "False", "(1,)", &[0; 4]);
        let error = from_bytes(&floats).unwrap().into_int().unwrap_err();
        assert_eq!(error.to_string(), "holds float32, expected integers");
        let error = from_bytes(&floats).unwrap().into_text().unwrap_err();
        assert!(error.to_string().contains("expected unicode text"));
    }

    #[test]
    fn sizes_are_checked_against_the_bytes() {
        assert!(message(&file("<f4", "False", "(3,)", &[0; 8])).contains("12 bytes"));
        assert!(message(&file("<f4", "False", "(1,)", &[0; 8])).contains("4 bytes"));
        let absurd = file("<f8", "False", "(9999999999999, 9999999999999)", &[0; 8]);
        assert!(message(&absurd).contains("too large"));
        for order in ["True", "False"] {
            let endless = file("<f4", order, "(154880000000015488, 0)", &[]);
            assert!(message(&endless).contains("too large"));
            let empty = from_bytes(&file("<f4", order, "(4000000000, 0)", &[])).unwrap();
            assert_eq!(empty.into_matrix().unwrap().shape(), (4_000_000_000, 0));
        }
        let no_width = file("<U0", "False", "(99999999999,)", &[]);
        assert!(message(&no_width).contains("<U0"));
    }

    #[test]
    fn text_that_is_no_unicode_is_refused() {
        let surrogate = file("<U1", "False", "(1,)", &0xd800u32.to_le_bytes());
        assert!(message(&surrogate).contains("valid unicode"));
    }

    #[test]
    fn files_are_named_in_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        assert_eq!(read_file(&path).unwrap_err().kind(), ErrorKind::Io);
        std::fs::write(&path, b"nonsense").unwrap();
        assert!(read_file(&path).unwrap_err().to_string().contains("x.npy"));
        let mut bytes = Vec::new();
        write_i64(&mut bytes, &[1, 2]).unwrap();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read_file(&path).unwrap().into_int().unwrap(), [1, 2]);
    }

    proptest! {
        #[test]
        fn matrices_come_back_bit_for_bit(rows in 0usize..9, cols in 0usize..9, seed in any::<u32>()) {
            let bits = |i: usize, j: usize| seed.wrapping_mul((i * 31 + j + 1) as u32 | 1);
            let matrix = Matrix::from_fn(rows, cols, |i, j| f32::from_bits(bits(i, j)));
            let mut bytes = Vec::new();
            write_f32_matrix(&mut bytes, &matrix).unwrap();
            let back = from_bytes(&bytes).unwrap().into_matrix().unwrap();
            prop_assert_eq!(back.shape(), (rows, cols));
            let bits = |m: &Matrix| m.data().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&matrix));
        }

        #[test]
        fn integers_come_back(values in prop::collection::vec(any::<i64>(), 0..40)) {
            let mut bytes = Vec::new();
            write_i64(&mut bytes, &values).unwrap();
            prop_assert_eq!(from_bytes(&bytes).unwrap().into_int().unwrap(), values);
        }

        #[test]
        fn texts_come_back(values in prop::collection::vec("[^\0]{0,6}", 0..9)) {
            let mut bytes = Vec::new();
            write_text(&mut bytes, &values).unwrap();
            prop_assert_eq!(from_bytes(&bytes).unwrap().into_text().unwrap(), values);
        }
    }
}
