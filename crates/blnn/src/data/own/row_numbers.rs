//! Columns that number the rows, which pandas and R write beside the data: neither features nor
//! ids, unless there is nothing else to call the nodes by.

use std::collections::HashSet;

use super::ids::whole_number;

/// Why such a column is left out.
pub(crate) const ROW_NUMBERS: &str = "row numbers, as pandas writes them";

/// Whether a column has no name, or the one that pandas gives it for want of one.
pub(crate) fn is_nameless(name: &str) -> bool {
    name.is_empty() || name.starts_with("Unnamed: ")
}

/// Whether a text column is one: without a name, and a different whole number in every cell.
pub(crate) fn is_row_numbers<'c>(name: &str, cells: impl Iterator<Item = &'c String>) -> bool {
    if !is_nameless(name) {
        return false;
    }
    let mut seen = HashSet::new();
    let is_new = |cell: &String| whole_number(cell.as_bytes()).is_some_and(|n| seen.insert(n));
    let mut cells = cells.peekable();
    cells.peek().is_some() && cells.all(is_new)
}

/// Whether a parquet column is one by its name.
pub(crate) fn is_index(name: &str) -> bool {
    name.starts_with("__index_level_") && name.ends_with("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_have_no_name_and_do_not_repeat() {
        let is = |name: &str, cells: &[&str]| {
            let cells: Vec<String> = cells.iter().map(|&cell| cell.to_owned()).collect();
            is_row_numbers(name, cells.iter())
        };
        assert!(is("", &["0", "1", "2"]) && is("Unnamed: 0", &["5", "1"]));
        assert!(!is("x", &["0", "1"]) && !is("", &["0", "0"]) && !is("", &["a", "b"]));
        assert!(!is("", &["0.5", "1"]) && !is("", &[]));
        assert!(is_index("__index_level_0__") && !is_index("index"));
    }
}
