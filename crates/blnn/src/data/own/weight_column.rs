//! Weights, times and kinds where an end of an edge is looked for: between the two ends, as in
//! `ann,0.5,bob`, or before them, as in `2020-01-31,ann,bob`. Where no name tells the ends, the
//! first two columns would be taken, and the weights for nodes.

use std::collections::HashSet;

use super::columns::plain;
use super::ids::whole_number;
use super::node_table::{is_missing, number};

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

/// Why the first column is no end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoEnd {
    Name,
    Dates,
    Fractions,
    /// The two columns behind it name the same nodes, and it names none of them.
    Foreign,
}

impl NoEnd {
    /// What is said of the column.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Name => "holds no ids by its name",
            Self::Dates => "holds dates",
            Self::Fractions => "holds fractions",
            Self::Foreign => {
                "has no id in common with the two columns behind it, which share ids with each \
                 other,"
            }
        }
    }
}

/// Names of columns that are never the ends.
const NO_ENDS: [&str; 5] = ["timestamp", "time", "datetime", "date", "weight"];

/// Whether the column `first` stands before the two ends and is none, by its name and by what the
/// first records hold. There must be two more columns.
pub(super) fn before_ends(
    name: Option<&str>,
    sample: &[Vec<String>],
    first: usize,
) -> Option<NoEnd> {
    let rows: Vec<[&str; 3]> = sample
        .iter()
        .filter_map(|row| row.get(first..)?.first_chunk())
        .map(|row: &[String; 3]| row.each_ref().map(String::as_str))
        .filter(|row| !is_missing(row[0]))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let [before, next] = [0, 1].map(|place| rows.iter().map(|row| row[place]).collect::<Vec<_>>());
    // Days that follow each other, or versions, are nodes of one kind.
    let alone = |are: fn(&[&str]) -> bool| are(&before) && !(are(&next) && share(&before, &next));
    if alone(are_dates) {
        return Some(NoEnd::Dates);
    }
    if alone(are_fractions) {
        return Some(NoEnd::Fractions);
    }
    if name.is_some_and(|name| NO_ENDS.contains(&plain(name).as_str())) {
        return Some(NoEnd::Name);
    }
    is_foreign(&rows).then_some(NoEnd::Foreign)
}

fn are_dates(cells: &[&str]) -> bool {
    cells.iter().all(|cell| is_date(cell))
}

/// Whether a cell is a day with its year, and perhaps a time: `2020-01-31`, `31.1.2020 12:00`.
pub(super) fn is_date(cell: &str) -> bool {
    let (day, time) = cell.split_once([' ', 'T']).unwrap_or((cell, ""));
    let mut parts = day.split(['-', '/', '.']);
    let (Some(start), Some(middle), Some(end), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_year = |part: &str| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_short =
        |part: &str| part.len() <= 2 && part.parse().is_ok_and(|n: u8| (1..=31).contains(&n));
    let is_day =
        is_short(middle) && (is_year(start) && is_short(end) || is_short(start) && is_year(end));
    is_day && time.bytes().all(|byte| byte.is_ascii_digit() || b":.+- ZAPMUTC".contains(&byte))
}

/// Whether a column holds numbers with fractions, and not the ids of arXiv, which look so.
fn are_fractions(cells: &[&str]) -> bool {
    let is_fraction =
        |cell: &&str| cell.parse::<f64>().is_ok_and(|value| value.fract().abs() > 0.0);
    let are_numbers = cells.iter().all(|cell| number(cell).is_some());
    are_numbers && cells.iter().any(is_fraction) && !cells.iter().all(|cell| is_arxiv(cell))
}

/// Whether a number begins with a year and a month of two digits each: `1204.5678`.
fn is_arxiv(cell: &str) -> bool {
    let month = cell.split_once('.').filter(|(start, _)| start.len() == 4);
    let month = month.and_then(|(start, _)| start.get(2..)?.parse::<u8>().ok());
    month.is_some_and(|month| (1..=12).contains(&month))
}

/// Whether the last two columns name the same nodes, and the first none of them.
fn is_foreign(rows: &[[&str; 3]]) -> bool {
    /// Of the ids of a column one in this many must be in the other one. Fewer are chance, as
    /// where a city is called as a country is.
    const RARE: usize = 20;
    // `Singapore,Singapore` is a city and its country, or a self-loop: it tells nothing.
    let apart = || rows.iter().filter(|[_, one, other]| one != other && !is_missing(other));
    let before: HashSet<&str> = rows.iter().map(|row| row[0]).collect();
    let [some, others] =
        [1, 2].map(|place| apart().map(|row| row[place]).collect::<HashSet<&str>>());
    let shared: Vec<&str> = some.intersection(&others).copied().collect();
    let many = shared.len() * RARE >= some.len().max(others.len());
    if shared.is_empty() || !many || !before.is_disjoint(&some) || !before.is_disjoint(&others) {
        return false;
    }
    // Equal texts mean the same; equal numbers may be an item and its rating.
    if shared.iter().any(|cell| !is_whole(cell)) {
        return true;
    }
    // The edges of one node, listed with their lengths: `0,1,532`, `0,2,281`.
    let is_one_node = before.len() == 1 && before.iter().all(|cell| is_whole(cell));
    !is_one_node && are_alike(&some, &others) && (are_moments(rows) || !is_scale(&others))
}

/// Whether whole numbers reach about as far as others do: ids do, an item and its count do not.
fn are_alike(some: &HashSet<&str>, others: &HashSet<&str>) -> bool {
    let [most, other] = [some, others].map(|cells| numbers(cells).max().unwrap_or(0));
    most <= 2 * other && other <= 2 * most
}

/// Whether whole numbers may be ratings, ages, percents or years.
fn is_scale(cells: &HashSet<&str>) -> bool {
    numbers(cells).all(|n| n <= 100) || numbers(cells).all(|n| (1900..=2100).contains(&n))
}

fn numbers(cells: &HashSet<&str>) -> impl Iterator<Item = i64> {
    cells.iter().filter_map(|cell| whole_number(cell.as_bytes()))
}

/// Whether the rows begin with Unix times, in their order: seconds or milliseconds since 1970, of
/// the years 2001 to 2039.
fn are_moments(rows: &[[&str; 3]]) -> bool {
    let times: Option<Vec<i64>> = rows.iter().map(|row| whole_number(row[0].as_bytes())).collect();
    let within = |times: &[i64], second: i64| {
        times.iter().all(|time| (1_000_000_000..2_200_000_000).contains(&(time / second)))
    };
    times.is_some_and(|t| t.is_sorted() && (within(&t, 1) || within(&t, 1000)))
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

    fn before(name: Option<&str>, text: &str) -> Option<NoEnd> {
        let row = |line: &str| line.split(',').map(str::to_owned).collect();
        before_ends(name, &text.lines().map(row).collect::<Vec<_>>(), 0)
    }

    /// Rows `0..count`, written by `row`.
    fn many(count: u32, row: impl Fn(u32) -> [u32; 3]) -> String {
        let line = |at| row(at).map(|cell| cell.to_string()).join(",");
        (0..count).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_stands_before_the_ends_is_seen() {
        use NoEnd::{Dates, Foreign, Fractions, Name};
        for (text, wanted) in [
            ("0.5,1,2\n1,2,3", Fractions),
            ("4.5,u1,i1\n3,u2,i2", Fractions),
            ("1e-05,1,2\n,2,3", Fractions),
            ("0.5,0.7,x", Fractions),
            ("2020-01-31,u1,i1\n2020-02-01,u2,i2", Dates),
            ("31.1.2020 12:00,1,2\n1.2.2020 9:30,2,3", Dates),
            ("follows,ann,bob\nlikes,bob,cy\nfollows,cy,cy", Foreign),
            ("email,ann,bob\nemail,bob,cy", Foreign),
            ("email,250,300\nsms,300,410", Foreign),
            ("20,1009,1010\n20,1010,1011\n40,1009,1011", Foreign),
            ("1700000000,1,2\n1700000060,2,3", Foreign),
        ] {
            assert_eq!(before(None, text), Some(wanted), "{text}");
        }
        assert_eq!(before(Some("Timestamp"), "20,1,2\n40,2,3"), Some(Name));
        assert_eq!(before(Some("weight"), "3,1,2\n1,2,3"), Some(Name));
        let contacts = many(1000, |at| [50_000 + at / 3, at * 7 % 2000, at * 11 % 2000]);
        assert_eq!(before(None, &contacts), Some(Foreign));
    }

    #[test]
    fn first_columns_that_are_ends_are_let_through() {
        for text in [
            "1,2,0.5\n2,3,1",
            "1.0,2.0,0.5\n2.0,3.0,1",
            "ann,bob,follows,2020-01-31\nbob,cy,likes,2020-02-01",
            "ann,film,5\nbob,book,3",
            "ann,1,5\nbob,2,3\ncy,3,1",
            "101,1,5\n102,2,3\n103,3,1",
            "1234567899,3,5\n1234567890,5,3",
            "ann,1999,2001\nbob,2001,2003",
            "ann,Singapore,Singapore\nbob,Berlin,Germany",
            "2020-01-31,2020-02-01,0.5\n2020-02-01,2020-02-02,0.7",
            "2020-01-31 Opening,ann,guest\n2020-02-01 Closing,bob,host",
            "1.0,1.1,upgrade\n1.1,1.2,upgrade",
            "1204.5678,ann,author\n1301.1,bob,editor",
            "1204.5678,1301.1,cites\n1301.1,1101.2,cites",
            "0.5,1",
            "",
        ] {
            assert_eq!(before(None, text), None, "{text}");
        }
        assert_eq!(before(Some("user"), "ann,film,5\nbob,book,3"), None);
    }

    /// Numbers that are equal by chance, in lists as long as the sample.
    #[test]
    fn ratings_and_lengths_beside_ids_are_let_through() {
        let ratings = many(1000, |at| [5000 + at / 4, 1 + at * 7 % 40, 1 + at % 5]);
        let percents = many(1000, |at| [5000 + at / 4, 1 + at * 7 % 150, at % 101]);
        let years = many(1000, |at| [5000 + at / 4, at * 7 % 3000, 1990 + at % 30]);
        let counts = many(1000, |at| [5000 + at / 4, 1 + at * 7 % 900, 1 + at * at / 50]);
        let lengths = many(1000, |at| [0, 1 + at, 200 + at * 7 % 900]);
        let links = many(1000, |at| [at / 5, at * 7 % 900, 1 + at % 300]);
        for text in [ratings, percents, years, counts, lengths, links] {
            assert_eq!(before(None, &text), None, "{text}");
        }
    }
}
