//! Whole numbers without a sign in parquet files, which stores them as signed ones of the same bits.

use parquet::basic::{ConvertedType, LogicalType};
use parquet::schema::types::ColumnDescriptor;

/// Whether the numbers of a column have no sign.
pub(crate) fn has_no_sign(column: &ColumnDescriptor) -> bool {
    let by_converted = matches!(
        column.converted_type(),
        ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
    );
    let by_logical = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(integer)) if !integer.is_signed
    );
    by_converted || by_logical
}

/// The number that 32 stored bits mean.
pub(crate) fn widened(stored: i32, no_sign: bool) -> i64 {
    if no_sign { i64::from(stored.cast_unsigned()) } else { i64::from(stored) }
}

/// The number that 64 stored bits mean, as text.
pub(crate) fn written(stored: i64, no_sign: bool) -> String {
    if no_sign { stored.cast_unsigned().to_string() } else { stored.to_string() }
}
