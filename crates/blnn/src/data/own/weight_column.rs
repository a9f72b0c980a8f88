//! A weight between the two ends of an edge, as in `ann,0.5,bob`. Where no name tells the ends, the
//! first two columns would be taken, and the weights for nodes.

use std::collections::HashSet;

use super::ids::whole_number;
use super::node_table::number;

/// Whether the column behind `first` holds weights and the one behind it the other ends, by what
/// the first records hold. Numbers beside texts may be ids of another kind, as in
/// `ann,1204.5678,author`: they count as weights only where the columns beside them name the same
/// nodes.
pub(super) fn is_between(sample: &[Vec<String>], first: usize) -> bool {
    let column = |place: usize| -> Vec<&str> {
        sample.iter().filter_map(|row| row.get(place)).map(String::as_str).collect()
    };
    let [source, weight, target] = [first, first + 1, first + 2].map(column);
    let is_weight = |cells: &[&str]| cells.iter().all(|cell| number(cell).is_some());
    if target.is_empty() || !is_weight(&weight) {
        return false;
    }
    if are_texts(&source) && are_texts(&target) {
        return share(&source, &target);
    }
    let has_fraction = weight.iter().any(|cell| !is_whole(without_zeros(cell)));
    has_fraction && source.iter().chain(&target).all(|cell| is_whole(cell))
}

fn is_whole(cell: &str) -> bool {
    whole_number(cell.as_bytes()).is_some()
}

/// A whole number that went through a column of fractions, as an id may have: `7.0`.
fn without_zeros(cell: &str) -> &str {
    match cell.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => cell,
    }
}

fn are_texts(cells: &[&str]) -> bool {
    cells.iter().all(|cell| number(cell).is_none())
}

fn share(some: &[&str], others: &[&str]) -> bool {
    let some: HashSet<&str> = some.iter().copied().collect();
    others.iter().any(|other| some.contains(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> bool {
        let row = |line: &str| line.split(',').map(str::to_owned).collect();
        is_between(&text.lines().map(row).collect::<Vec<_>>(), 0)
    }

    #[test]
    fn weights_between_ids_are_seen() {
        for text in ["a,0.5,b\nb,1,c", "ann,5,bob\nbob,3,cy", "1,0.5,2\n2,1,3"] {
            assert!(found(text), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_let_through() {
        for text in [
            "ann,17,bought\nbob,18,sold",
            "1,2,0.5\n2,3,1",
            "1,2,3\n2,3,4",
            "1,2.0,1999\n2,3.0,2001",
            "ann,1204.5678,author\nbob,1301.1000,editor",
            "ann,1204.5678,2012\nbob,1301.1,2013",
            "1204.5678,1301.1,cites\n1301.1,1101.2,cites",
            "a,b,c\nb,1,c",
            "a,1\nb,2",
            "",
        ] {
            assert!(!found(text), "{text}");
        }
    }
}
