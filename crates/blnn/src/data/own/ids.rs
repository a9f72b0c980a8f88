//! The nodes' ids: whole numbers where every id is one, else texts.

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::hash_table::Entry as TableEntry;
use hashbrown::{HashMap, HashTable};

/// The row of no node.
const NONE: u32 = u32::MAX;

/// An id that is written as whole numbers are: no sign but a minus, no leading zeros, at most
/// eighteen digits. Such an id can be kept as a number and printed again without loss.
pub(crate) fn whole_number(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let leading_zero = digits.first() == Some(&b'0') && (digits.len() > 1 || negative);
    if digits.is_empty() || digits.len() > 18 || leading_zero {
        return None;
    }
    let mut value = 0_i64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// How texts are hashed: the numbers of texts follow from their order, so the seed may be any.
pub(crate) type TextHasher = hashbrown::DefaultHashBuilder;

/// Where a text stands, kept in the table itself: a look-up then touches the table and the text.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    length: u32,
    number: u32,
}

impl Entry {
    fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start..self.start + self.length as usize]
    }
}

/// Different texts, numbered in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    text: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<Entry>,
    hasher: TextHasher,
}

impl Interner {
    pub(crate) fn new(hasher: TextHasher) -> Self {
        Self { hasher, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        let bytes = &self.text[start..self.ends[number as usize]];
        // Only whole texts are put in.
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.get(number))
    }

    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text.as_bytes());
        let same = |entry: &Entry| entry.of(&self.text) == text.as_bytes();
        self.table.find(hash, same).map(|entry| entry.number)
    }

    /// The number of a text, and whether it is new.
    pub(crate) fn intern(&mut self, text: &str) -> (u32, bool) {
        self.intern_hashed(self.hasher.hash_one(text.as_bytes()), text.as_bytes())
    }

    /// The same for a text in UTF-8 whose hash is known.
    pub(crate) fn intern_hashed(&mut self, hash: u64, text: &[u8]) -> (u32, bool) {
        let number = self.len() as u32;
        let Self { text: all, table, hasher, ends } = self;
        let slot = table.entry(
            hash,
            |entry| entry.of(all) == text,
            |entry| hasher.hash_one(entry.of(all)),
        );
        let vacant = match slot {
            TableEntry::Occupied(found) => return (found.get().number, false),
            TableEntry::Vacant(vacant) => vacant,
        };
        vacant.insert(Entry { start: all.len(), length: text.len() as u32, number });
        all.extend_from_slice(text);
        ends.push(all.len());
        (number, true)
    }
}

/// Whole numbers with the row of each.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    /// Row of `least + i`, or [`NONE`].
    Table { least: i64, rows: Vec<u32> },
    /// For numbers too far apart for a table.
    Map(HashMap<i64, u32>),
}

impl Numbers {
    /// The rows of distinct numbers, or the position of the first number that came before.
    fn new(ids: &[i64]) -> Result<Self, usize> {
        let least = ids.iter().copied().min().unwrap_or(0);
        let most = ids.iter().copied().max().unwrap_or(0);
        // The distance of two signed numbers fits an unsigned one.
        let span = most.abs_diff(least) as usize;
        if span > 8 * ids.len() + 1024 {
            let mut map = HashMap::with_capacity(ids.len());
            for (row, &id) in ids.iter().enumerate() {
                if map.insert(id, row as u32).is_some() {
                    return Err(row);
                }
            }
            return Ok(Self::Map(map));
        }
        let mut rows = vec![NONE; span + 1];
        for (row, &id) in ids.iter().enumerate() {
            let slot = &mut rows[(id - least) as usize];
            if *slot != NONE {
                return Err(row);
            }
            *slot = row as u32;
        }
        Ok(Self::Table { least, rows })
    }

    fn get(&self, id: i64) -> Option<u32> {
        match self {
            Self::Table { least, rows } => {
                let place = usize::try_from(id.checked_sub(*least)?).ok()?;
                rows.get(place).copied().filter(|&row| row != NONE)
            }
            Self::Map(map) => map.get(&id).copied(),
        }
    }
}

/// The ids of all nodes in row order, and the row of each id.
#[derive(Clone, Debug)]
pub(crate) enum NodeIds {
    /// Every id is a whole number.
    Numbers { ids: Vec<i64>, rows: Numbers },
    /// At least one is not.
    Texts(Interner),
}

impl NodeIds {
    /// Distinct whole numbers in row order, or the position of the first that came before.
    pub(crate) fn of_numbers(ids: Vec<i64>) -> Result<Self, usize> {
        let rows = Numbers::new(&ids)?;
        Ok(Self::Numbers { ids, rows })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers { ids, .. } => ids.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    pub(crate) fn row_of_number(&self, id: i64) -> Option<u32> {
        match self {
            Self::Numbers { rows, .. } => rows.get(id),
            Self::Texts(texts) => texts.find(&id.to_string()),
        }
    }

    pub(crate) fn row_of_text(&self, id: &str) -> Option<u32> {
        match self {
            Self::Numbers { rows, .. } => rows.get(whole_number(id.as_bytes())?),
            Self::Texts(texts) => texts.find(id),
        }
    }

    pub(crate) fn text(&self, row: usize) -> Cow<'_, str> {
        match self {
            Self::Numbers { ids, .. } => Cow::Owned(ids[row].to_string()),
            Self::Texts(texts) => Cow::Borrowed(texts.get(row as u32)),
        }
    }

    /// The ids as a graph keeps them; none if they are just the rows' numbers.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let counts_up = |ids: &[i64]| ids.iter().enumerate().all(|(row, &id)| row as i64 == id);
        match self {
            Self::Numbers { ids, .. } if counts_up(ids) => None,
            _ => Some((0..self.len()).map(|row| self.text(row).into_owned()).collect()),
        }
    }
}

/// Ids in the order of a table's rows, before it is known whether all are whole numbers.
#[derive(Clone, Debug)]
pub(crate) enum IdColumn {
    Numbers(Vec<i64>),
    Texts(Interner),
}

impl IdColumn {
    pub(crate) fn new() -> Self {
        Self::Numbers(Vec::new())
    }

    /// Adds an id; false if it was there before (seen at once for texts, at the end for numbers).
    pub(crate) fn push(&mut self, id: &str) -> bool {
        if let Self::Numbers(ids) = self {
            if let Some(number) = whole_number(id.as_bytes()) {
                ids.push(number);
                return true;
            }
            let mut texts = Interner::default();
            if ids.iter().any(|number| !texts.intern(&number.to_string()).1) {
                return false;
            }
            *self = Self::Texts(texts);
        }
        match self {
            Self::Texts(texts) => texts.intern(id).1,
            Self::Numbers(_) => true,
        }
    }

    /// Adds the ids of another column, or returns the row there of one that came before.
    pub(crate) fn append(&mut self, other: &Self) -> Result<(), usize> {
        let rows = match (&mut *self, other) {
            (Self::Numbers(ids), Self::Numbers(more)) => {
                ids.extend(more);
                return Ok(());
            }
            (_, Self::Numbers(more)) => more.len(),
            (_, Self::Texts(more)) => more.len(),
        };
        match (0..rows).find(|&row| !self.push(&other.text(row))) {
            Some(row) => Err(row),
            None => Ok(()),
        }
    }

    /// The id of a row.
    pub(crate) fn text(&self, row: usize) -> Cow<'_, str> {
        match self {
            Self::Numbers(ids) => Cow::Owned(ids[row].to_string()),
            Self::Texts(texts) => Cow::Borrowed(texts.get(row as u32)),
        }
    }

    /// The ids with their rows, or the row of the first that came before.
    pub(crate) fn finish(self) -> Result<NodeIds, usize> {
        match self {
            Self::Numbers(ids) => NodeIds::of_numbers(ids),
            Self::Texts(texts) => Ok(NodeIds::Texts(texts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_numbers_that_print_the_same_are_numbers() {
        let cases: [(&[u8], Option<i64>); 10] = [
            (b"0", Some(0)),
            (b"-7", Some(-7)),
            (b"999999999999999999", Some(999_999_999_999_999_999)),
            (b"1000000000000000000", None),
            (b"007", None),
            (b"-0", None),
            (b"+7", None),
            (b"1.0", None),
            (b"", None),
            (b"-", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(whole_number(text), wanted, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn numbers_near_and_far_find_their_rows() {
        for ids in [vec![5, 3, 9], vec![-999_999_999_999_999_999, 999_999_999_999_999_999, 0]] {
            let nodes = NodeIds::of_numbers(ids.clone()).unwrap();
            for (row, &id) in ids.iter().enumerate() {
                assert_eq!(nodes.row_of_number(id), Some(row as u32));
                assert_eq!(nodes.row_of_text(&id.to_string()), Some(row as u32));
            }
            assert_eq!(nodes.row_of_number(4), None);
            assert_eq!(nodes.row_of_number(i64::MIN), None);
            assert_eq!(nodes.row_of_text("x"), None);
            let twice = [&ids[..], &ids[1..2]].concat();
            assert_eq!(NodeIds::of_numbers(twice).unwrap_err(), 3);
        }
    }

    #[test]
    fn a_column_turns_to_texts_when_it_must() {
        let mut column = IdColumn::new();
        assert!(column.push("12") && column.push("7") && column.push("x7") && column.push("007"));
        assert!(!column.push("7"), "seen as a number before");
        let ids = column.finish().unwrap();
        let rows = ["12", "7", "x7", "007"].map(|id| ids.row_of_text(id));
        assert_eq!(rows, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(ids.row_of_number(12), Some(0));
    }

    #[test]
    fn ids_that_count_from_zero_need_no_names() {
        assert_eq!(NodeIds::of_numbers(vec![0, 1, 2]).unwrap().names(), None);
        let names = NodeIds::of_numbers(vec![1, 0]).unwrap().names();
        assert_eq!(names, Some(vec!["1".to_owned(), "0".to_owned()]));
    }

    proptest! {
        #[test]
        fn texts_keep_their_numbers(texts in prop::collection::vec("[ab]{0,3}", 0..60)) {
            let mut interner = Interner::default();
            let mut seen: Vec<&String> = Vec::new();
            for text in &texts {
                let is_new = !seen.contains(&text);
                if is_new {
                    seen.push(text);
                }
                let place = seen.iter().position(|&s| s == text).unwrap() as u32;
                prop_assert_eq!(interner.intern(text), (place, is_new));
            }
            prop_assert!(interner.iter().eq(seen.iter().map(|s| s.as_str())));
        }
    }
}
