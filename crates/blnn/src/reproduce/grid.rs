//! [`Grid`]: a table of words and numbers, for a terminal or for Markdown.

use std::fmt::Write;

/// A table. Columns that are empty in every row are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grid {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table with these columns.
    pub(super) fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row, a cell for each column.
    pub(super) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.header.len(), "a cell for each column");
        self.rows.push(row);
    }

    /// Whether there are no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns that say something.
    fn columns(&self) -> Vec<usize> {
        let told = |j: &usize| self.rows.iter().any(|row| !row[*j].is_empty());
        (0..self.header.len()).filter(told).collect()
    }

    /// Whether a column holds numbers, which stand to the right.
    fn numeric(&self, j: usize) -> bool {
        let number = |cell: &str| {
            let starts = cell.starts_with(|c: char| c.is_ascii_digit() || "+-−<".contains(c));
            let is_name = |word: &str| {
                word.contains(char::is_alphabetic) && !["of", "(splits)"].contains(&word)
            };
            cell == "–" || (starts && !cell.split_whitespace().any(is_name))
        };
        self.rows.iter().map(|row| row[j].as_str()).all(|cell| cell.is_empty() || number(cell))
    }

    /// The table in Markdown.
    pub(super) fn markdown(&self) -> String {
        let columns = self.columns();
        let line = |cells: &[String]| {
            let chosen: Vec<String> =
                columns.iter().map(|&j| cells[j].replace('|', "\\|")).collect();
            format!("| {} |\n", chosen.join(" | "))
        };
        let mut out = line(&self.header);
        for &j in &columns {
            out.push_str(if self.numeric(j) { "|--:" } else { "|---" });
        }
        out.push_str("|\n");
        out.extend(self.rows.iter().map(|row| line(row)));
        out
    }

    /// The table for a terminal, its columns aligned.
    pub(super) fn plain(&self) -> String {
        let columns = self.columns();
        let width = |j: usize| {
            let cells = self.rows.iter().map(|row| &row[j]).chain([&self.header[j]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let shape: Vec<(usize, usize, bool)> =
            columns.iter().map(|&j| (j, width(j), self.numeric(j))).collect();
        let mut out = String::new();
        for cells in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = String::new();
            for &(j, width, numeric) in &shape {
                let cell = &cells[j];
                let _ = if numeric {
                    write!(line, "  {cell:>width$}")
                } else {
                    write!(line, "  {cell:<width$}")
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_go_and_numbers_stand_right() {
        let mut grid = Grid::new(&["method", "τ", "score"]);
        grid.push(vec!["BGRL".into(), String::new(), "93.17".into()]);
        grid.push(vec!["a|b".into(), String::new(), "–".into()]);
        assert_eq!(
            grid.markdown(),
            "| method | score |\n|---|--:|\n| BGRL | 93.17 |\n| a\\|b | – |\n"
        );
        assert_eq!(grid.plain(), "  method  score\n  BGRL    93.17\n  a|b         –\n");
    }

    #[test]
    fn what_begins_with_a_digit_may_be_a_name() {
        let cells = ["93.17 ± 0.20 (splits)", "5 of 10", "< 0.001", "-0.31", "0.1.0, 7d3d92f"];
        let mut grid = Grid::new(&["a", "b", "c", "d", "e"]);
        grid.push(cells.map(str::to_owned).to_vec());
        assert!(grid.markdown().contains("\n|--:|--:|--:|--:|---|\n"), "{}", grid.markdown());
    }
}
