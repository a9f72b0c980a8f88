//! Numbers as people read them.

/// A number with separators between groups of three digits.
///
/// ```
/// assert_eq!(blnn::text::grouped(34_493), "34,493");
/// ```
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}
