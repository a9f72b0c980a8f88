//! [`Packed`]: many small numbers as text, for a page to read as a typed array.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Whole numbers, little-endian, in base 64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packed {
    /// Bytes of one number: 1, 2 or 4.
    width: u8,
    base64: String,
}

impl Packed {
    /// In as few bytes as the largest number needs.
    ///
    /// ```
    /// use blnn::report::Packed;
    ///
    /// assert_eq!(Packed::numbers(&[1, 2, 255]).width(), 1);
    /// assert_eq!(Packed::numbers(&[1, 256]).width(), 2);
    /// assert_eq!(Packed::numbers(&[1, 65_536]).width(), 4);
    /// ```
    pub fn numbers(values: &[u32]) -> Self {
        match values.iter().max().copied().unwrap_or(0) {
            0..=0xFF => Self::of(1, values.iter().map(|&v| v as u8).collect()),
            0x100..=0xFFFF => Self::words(values.iter().map(|&v| v as u16)),
            _ => Self::of(4, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        }
    }

    /// In two bytes each.
    pub fn words(values: impl Iterator<Item = u16>) -> Self {
        Self::of(2, values.flat_map(u16::to_le_bytes).collect())
    }

    fn of(width: u8, bytes: Vec<u8>) -> Self {
        Self { width, base64: STANDARD.encode(bytes) }
    }

    /// Bytes of one number.
    pub fn width(&self) -> u8 {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian() {
        assert_eq!(Packed::numbers(&[1, 0x0203]).base64, "AQADAg==");
        assert_eq!(Packed::numbers(&[77]).base64, "TQ==");
        assert_eq!(Packed::numbers(&[]).base64, "");
        assert_eq!(Packed::words([1_u16].into_iter()).base64, "AQA=");
    }
}
