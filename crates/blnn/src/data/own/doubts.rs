//! Ids that edges name and hardly mean: the empty cells and the fractions of other programs, and
//! lines that are no edges. A table of nodes would tell them; where there is none, they are looked
//! for here.

use super::endpoints::{EdgeEnd, EndPoints};
use super::ids::Interner;
use super::node_table::is_missing;

/// How an id is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As digits are.
    Whole,
    /// As a whole number that went through a column of fractions: `7.0`.
    WholeAndZero,
    /// As any other number with a point, which may be a version.
    Fraction,
    /// As what stands for an empty cell.
    Missing,
    Text,
}

impl Form {
    fn of(id: &str) -> Self {
        // Ids of digits belong to each other, with zeros in front or too many to be counted with.
        let is_whole = |id: &str| {
            let digits = id.strip_prefix('-').unwrap_or(id);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        match id.split_once('.') {
            _ if is_missing(id) => Self::Missing,
            None if is_whole(id) => Self::Whole,
            Some((start, zeros)) if is_whole(start) && is_zeros(zeros) => Self::WholeAndZero,
            Some(_) if id.parse::<f64>().is_ok() => Self::Fraction,
            _ => Self::Text,
        }
    }
}

fn is_zeros(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte == b'0')
}

/// An id that is doubted, and what is said of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It stands for an empty cell.
    Missing(EdgeEnd),
    /// It may be the node that another id names without a fraction.
    Fraction(EdgeEnd),
    /// Of so many ids the first that is no whole number, as nearly all others are.
    Few(EdgeEnd, usize),
}

/// What is doubtful about the ids that edges name, the worst first.
pub(super) fn find(ends: &EndPoints) -> Option<Doubt> {
    let EndPoints::Texts { ids, pairs } = ends else {
        return None;
    };
    let forms = ids.iter().map(Form::of).collect();
    let ids = Ids { texts: ids, pairs, forms };
    if ids.has(Form::Missing) {
        return ids.first(|form| form == Form::Missing).map(Doubt::Missing);
    }
    if !ids.has(Form::Whole) {
        return None;
    }
    // Where there are texts or other fractions, it may be a version.
    let only_whole = !ids.has(Form::Fraction) && !ids.has(Form::Text);
    if ids.has(Form::WholeAndZero) && only_whole {
        return ids.first(|form| form == Form::WholeAndZero).map(Doubt::Fraction);
    }
    ids.few()
}

/// Ids, the edges between them, and how each id is written.
struct Ids<'a> {
    texts: &'a Interner,
    pairs: &'a [[u32; 2]],
    forms: Vec<Form>,
}

impl Ids<'_> {
    fn has(&self, form: Form) -> bool {
        self.forms.contains(&form)
    }

    fn form(&self, id: u32) -> Form {
        self.forms[id as usize]
    }

    /// The first end of an edge that is written as is wanted.
    fn first(&self, is_wanted: impl Fn(Form) -> bool) -> Option<EdgeEnd> {
        self.pairs.iter().enumerate().find_map(|(edge, pair)| {
            let end = pair.iter().position(|&id| is_wanted(self.form(id)))?;
            Some(EdgeEnd { edge, end, id: self.texts.get(pair[end]).to_owned() })
        })
    }

    /// Texts where few edges have one. Where ids of two kinds meet by design, as people and
    /// articles do, most edges have.
    fn few(&self) -> Option<Doubt> {
        let is_odd = |form: Form| form != Form::Whole;
        let has_odd = |pair: &&[u32; 2]| pair.iter().any(|&id| is_odd(self.form(id)));
        if 2 * self.pairs.iter().filter(has_odd).count() >= self.pairs.len() {
            return None;
        }
        let count = self.forms.iter().filter(|&&form| is_odd(form)).count();
        self.first(is_odd).map(|end| Doubt::Few(end, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Doubt> {
        let mut ends = EndPoints::new();
        for line in text.lines() {
            let (source, target) = line.split_once(',').unwrap();
            ends.push(source, target);
        }
        find(&ends)
    }

    fn end(edge: usize, end: usize, id: &str) -> EdgeEnd {
        EdgeEnd { edge, end, id: id.into() }
    }

    #[test]
    fn empty_cells_and_fractions_are_found() {
        let missing = |text| found(text) == Some(Doubt::Missing(end(1, 1, "NaN")));
        assert!(missing("1,2\n2,NaN\n3,NaN") && missing("ann,bob\nbob,NaN"));
        assert_eq!(found("null,1"), Some(Doubt::Missing(end(0, 0, "null"))));
        let fraction = Some(Doubt::Fraction(end(0, 1, "2.0")));
        assert_eq!(found("1,2.0\n2,3.0\n3,1.0"), fraction);
        assert_eq!(found("-1,2.0\n7,3"), fraction);
    }

    #[test]
    fn a_few_texts_among_whole_numbers_are_found() {
        assert_eq!(found("1,2\n2,3\nTotal,5"), Some(Doubt::Few(end(2, 0, "Total"), 1)));
        let header = found("1,2\n2,3\nsource,target\n3,1");
        assert_eq!(header, Some(Doubt::Few(end(2, 0, "source"), 2)));
    }

    #[test]
    fn ids_that_may_be_meant_are_let_through() {
        for text in [
            "1,2\n2,3",
            "1.0,2.0\n2.0,1.0",
            "1.0,1.1\n1.1,2\n2,3",
            "debian,7\nrails,4.0\nwin,10",
            "ann,17\nbob,18",
            "a,b\nb,c\nc,1",
            "007,8\n8,9",
            "nano,no\nno,n/b",
        ] {
            let odd = found(text).filter(|doubt| !matches!(doubt, Doubt::Few(..)));
            assert_eq!(odd, None, "{text}");
        }
        assert_eq!(found("ann,17\nbob,18\ncy,17"), None);
        assert_eq!(found("007,8\n8,9\n9,1"), None);
        assert_eq!(found("1,2\n2,3\n3,-9000000000000000000"), None);
    }
}
