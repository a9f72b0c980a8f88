//! Whether the first line of a table is its header.
//!
//! Names that are told or known decide, and numbers and dates do: a column of them has a header if
//! its first cell is none. What is left are tables of texts only, where a header differs from data
//! by what it does not do: its names do not come again. There the reading is a guess, and the user
//! is told of it together with the flag that decides.

use std::collections::HashMap;

use super::ColumnNames;
use super::columns::{find_ends, find_id, plain, told};
use super::known::Known;
use super::node_table::{is_missing, number};
use super::weight_column::is_date;

/// How the first record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Header,
    Data,
    /// As the header, which is a guess.
    PerhapsHeader,
    /// As data, which is a guess.
    PerhapsData,
}

impl Reading {
    pub(crate) fn is_header(self) -> bool {
        matches!(self, Self::Header | Self::PerhapsHeader)
    }

    /// What is said of a guess; `flag` names a column and thereby tells of a header.
    pub(crate) fn remark(self, line: usize, first: &[String], flag: &str) -> Option<String> {
        const SHOWN: usize = 4;
        let shown: Vec<String> = first.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let more = if first.len() > SHOWN { ", …" } else { "" };
        let shown = shown.join(", ") + more;
        match self {
            Self::Header | Self::Data => None,
            Self::PerhapsHeader => Some(format!(
                "line {line} ({shown}) is taken as the header; if it is data, say so with \
                 --no-header"
            )),
            Self::PerhapsData => {
                let name = first.first().map_or("", String::as_str);
                Some(format!(
                    "line {line} ({shown}) is taken as data; if it is the header, say so with \
                     {flag} '{name}'"
                ))
            }
        }
    }
}

/// Rows of which one in this many may be an exception.
const RARE: usize = 20;

/// Words that head a column of texts. None of them is a header by itself: they decide where
/// nothing else does.
const WORDS: &str = "account actor airport artist author begin book brand buyer category character \
                     child cited citing city class club color colour company country customer \
                     department destination disease drug employee end entity family film follower \
                     followee follows friend gender gene genre group head host item kind label land \
                     language manager member movie object origin page paper parent payee payer person \
                     product protein receiver recipient relation seller sender sex site species start \
                     station student subject tail team term title topic type user";

/// Whether a cell reads as the name of a column.
fn is_word(cell: &str) -> bool {
    let cell = plain(cell);
    let is_known =
        |word: &str| word == "id" || word == "name" || WORDS.split(' ').any(|w| w == word);
    let one = |word: &str| is_known(word) || word.strip_suffix('s').is_some_and(is_known);
    cell.split('_').count() <= 3
        && !cell.bytes().any(|byte| byte.is_ascii_digit())
        && cell.split('_').any(one)
}

/// Whether the first record of an edge list is its header.
pub(crate) fn of_edges(sample: &[Vec<String>], columns: &ColumnNames) -> Reading {
    let Some((first, rest)) = sample.split_first() else {
        return Reading::Data;
    };
    let named = [&columns.source, &columns.target].into_iter().flatten();
    match surely(first, rest, named, columns.no_header, find_ends(first).is_some()) {
        Some(reading) => reading,
        None => ends_of_texts(first, rest, columns),
    }
}

/// Whether the first record of a table of nodes is its header.
pub(crate) fn of_nodes(
    sample: &[Vec<String>],
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
) -> Reading {
    let Some((first, rest)) = sample.split_first() else {
        return Reading::Data;
    };
    let named = [&columns.id, &columns.label].into_iter().flatten().chain(&columns.skip);
    let is_known = |cell: &String| known.is_some_and(|known| known.needs(cell));
    let knows = find_id(first).is_some() || first.iter().any(is_known);
    match surely(first, rest, named, columns.no_header, knows) {
        Some(reading) => reading,
        None => nodes_of_texts(first, rest, columns),
    }
}

/// The reading where flags, known names, numbers or dates leave no doubt.
fn surely<'n>(
    first: &[String],
    rest: &[Vec<String>],
    mut named: impl Iterator<Item = &'n String>,
    no_header: bool,
    knows: bool,
) -> Option<Reading> {
    // A number tells a column of any table; a name tells of a header, also where --no-header is
    // meant for the other table.
    let is_told =
        |name: &String| name.parse::<usize>().is_err() && told(first, 0, name, "").is_ok();
    if named.any(is_told) {
        return Some(Reading::Header);
    }
    if no_header {
        return Some(Reading::Data);
    }
    // Ids are never empty, and pandas leaves the name of its index empty.
    let nameless = first.first().is_some_and(String::is_empty)
        && rest.iter().any(|row| row.first().is_some_and(|cell| !cell.is_empty()));
    if knows || nameless {
        return Some(Reading::Header);
    }
    let measured = measured(rest, first.len());
    let heads =
        |place: usize| measured[place] && !is_measure(&first[place]) && !is_missing(&first[place]);
    let is_data = (0..first.len()).any(|place| measured[place] && is_measure(&first[place]));
    match ((0..first.len()).any(heads), is_data) {
        (true, false) => Some(Reading::Header),
        (false, true) if !is_word(&first[0]) => Some(Reading::Data),
        _ => None,
    }
}

/// Which columns hold numbers or dates in every record.
fn measured(rest: &[Vec<String>], width: usize) -> Vec<bool> {
    let is_one = |row: &Vec<String>, place: usize| row.get(place).is_some_and(|c| is_measure(c));
    let all = |place| !rest.is_empty() && rest.iter().all(|row| is_one(row, place));
    (0..width).map(all).collect()
}

fn is_measure(cell: &str) -> bool {
    number(cell).is_some() || is_date(cell)
}

/// A guess about edges between texts: an edge whose two ends occur nowhere else is rare in most
/// graphs, and a header is just that.
fn ends_of_texts(first: &[String], rest: &[Vec<String>], columns: &ColumnNames) -> Reading {
    let place = |wanted: &Option<String>, otherwise: usize| {
        let number = wanted.as_ref().and_then(|wanted| wanted.parse::<usize>().ok());
        number.map_or(otherwise, |number| number.saturating_sub(1))
    };
    let ends = [place(&columns.source, 0), place(&columns.target, 1)];
    let of = |row: &'_ [String]| ends.map(|end| row.get(end).cloned().unwrap_or_default());
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in rest {
        for id in of(row) {
            *counts.entry(id).or_default() += 1;
        }
    }
    let [source, target] = of(first);
    if source == target || counts.contains_key(&source) || counts.contains_key(&target) {
        return Reading::Data;
    }
    if is_word(&source) && is_word(&target) && !rest.is_empty() {
        return Reading::PerhapsHeader;
    }
    let is_lonely = |row: &&Vec<String>| of(row).iter().all(|id| counts[id] == 1);
    let lonely = rest.iter().filter(is_lonely).count();
    if rest.len() > 1 && lonely * RARE <= rest.len() {
        return Reading::PerhapsHeader;
    }
    Reading::PerhapsData
}

/// A guess about nodes with texts: a text that comes once in a column where others come again and
/// again is its name.
fn nodes_of_texts(first: &[String], rest: &[Vec<String>], columns: &ColumnNames) -> Reading {
    let id = columns.id.as_ref().and_then(|id| id.parse::<usize>().ok()).unwrap_or(1);
    let id = id.saturating_sub(1);
    let mut names_a_column = first.get(id).is_some_and(|cell| is_word(cell)) && !rest.is_empty();
    for (place, name) in first.iter().enumerate().filter(|(place, _)| *place != id) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let cells = rest.iter().filter_map(|row| row.get(place)).filter(|cell| !is_missing(cell));
        cells.for_each(|cell| *counts.entry(cell).or_default() += 1);
        if counts.contains_key(name.as_str()) {
            return Reading::Data;
        }
        let cells: usize = counts.values().sum();
        let single = counts.values().filter(|&&count| count == 1).count();
        names_a_column |= cells > 1 && single * RARE <= cells && !is_missing(name);
    }
    if names_a_column { Reading::PerhapsHeader } else { Reading::PerhapsData }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    fn edges(text: &str) -> Reading {
        of_edges(&rows(text), &ColumnNames::default())
    }

    fn nodes(text: &str) -> Reading {
        of_nodes(&rows(text), &ColumnNames::default(), None)
    }

    #[test]
    fn names_and_numbers_leave_no_doubt() {
        use Reading::{Data, Header};
        for (text, wanted) in [
            ("source,target\nann,bob", Header),
            ("Paper A,Paper B\n1,2\n2,3", Header),
            ("who,whom,weight\nann,bob,0.5\ncy,di,1", Header),
            (",who,whom\n0,ann,bob", Header),
            ("date,who,whom\n2020-01-31,ann,bob\n2020-02-01,bob,cy", Header),
            ("2020-01-31,ann,bob\n2020-02-01,cy,di", Data),
            ("ann,bob,0.5\ncy,di,1", Data),
            ("1,2\n2,3", Data),
            ("ann,bob\nbob,cy", Data),
            ("ann,ann\nbob,cy", Data),
        ] {
            assert_eq!(edges(text), wanted, "{text}");
        }
        for (text, wanted) in [
            ("user_id,land\na,de\nb,fr", Header),
            ("paper,year\n7,1999\n9,2001", Header),
            ("7,0.5\n9,1.5", Data),
            ("ann,de\nbob,fr\ncy,de", Data),
        ] {
            assert_eq!(nodes(text), wanted, "{text}");
        }
    }

    #[test]
    fn guesses_are_known_as_such() {
        use Reading::{PerhapsData, PerhapsHeader};
        for (text, wanted) in [
            ("user,friend\nann,bob\nbob,cy", PerhapsHeader),
            ("user,friend\nann,bob\ncy,di", PerhapsHeader),
            ("wer,wen\nann,bob\nbob,cy\ncy,ann", PerhapsHeader),
            ("ann,bob\ncy,di\ned,fay", PerhapsData),
            ("ann,bob", PerhapsData),
            ("user_a,user_b\nann,bob", PerhapsHeader),
            ("user_1,user_2\nuser_3,user_4", PerhapsData),
        ] {
            assert_eq!(edges(text), wanted, "{text}");
        }
        for (text, wanted) in [
            ("person,country,team\nann,de,red\nbob,fr,blue", PerhapsHeader),
            ("wer,land\nann,de\nbob,fr\ncy,de\ndi,fr", PerhapsHeader),
            ("city,2020,2021\nx,5,6\ny,7,8", PerhapsHeader),
            ("ann,de\nbob,fr\ncy,it", PerhapsData),
            ("ann\nbob", PerhapsData),
        ] {
            assert_eq!(nodes(text), wanted, "{text}");
        }
    }

    #[test]
    fn flags_decide_either_way() {
        let told = |source: &str, no_header| ColumnNames {
            source: Some(source.into()),
            no_header,
            ..ColumnNames::default()
        };
        let table = rows("ann,bob\ncy,di");
        assert_eq!(of_edges(&table, &told("ann", false)), Reading::Header);
        assert_eq!(of_edges(&table, &told("ann", true)), Reading::Header);
        assert_eq!(of_edges(&table, &told("1", true)), Reading::Data);
        // A number is no name, although it stands in the line.
        assert_eq!(of_edges(&rows("1,2\n3,1"), &told("2", false)), Reading::Data);
        let bare = ColumnNames { no_header: true, ..ColumnNames::default() };
        assert_eq!(of_edges(&rows("user,friend\nann,bob\nbob,cy"), &bare), Reading::Data);
        assert_eq!(of_nodes(&rows("id,land\nann,de"), &bare, None), Reading::Data);
    }

    #[test]
    fn a_guess_names_the_flag_against_it() {
        let first = rows("user,friend")[0].clone();
        let text = Reading::PerhapsHeader.remark(1, &first, "--source-column").unwrap();
        assert!(text.contains("line 1 (`user`, `friend`)") && text.contains("--no-header"));
        let text = Reading::PerhapsData.remark(3, &first, "--source-column").unwrap();
        assert!(text.contains("--source-column 'user'"), "{text}");
        assert_eq!(Reading::Data.remark(1, &first, ""), None);
    }
}
