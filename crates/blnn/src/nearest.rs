//! [`nearest`]: which known word a mistyped one was probably meant to be.

/// The known word with the fewest edits from `word`, unless even that one is too far to be a
/// slip of the hand: more than a third of the longer word's letters, but always at least one.
/// Letter case does not count; of equally near words the first wins.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word);
    known
        .into_iter()
        .filter_map(|candidate| Some((within_slack(&word, candidate)?, candidate)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// How many edits `word` is from `known`, or `None` if too many for a slip of the hand.
///
/// ```
/// assert_eq!(blnn::slip("Phtoo", "photo"), Some(1));
/// assert_eq!(blnn::slip("citeseer", "photo"), None);
/// ```
pub fn slip(word: &str, known: &str) -> Option<usize> {
    within_slack(&letters(word), known)
}

fn within_slack(word: &[char], known: &str) -> Option<usize> {
    let other = letters(known);
    let slack = (word.len().max(other.len()) / 3).max(1);
    // Each edit changes the length by at most one: most words are told apart by that alone.
    let distance = (word.len().abs_diff(other.len()) <= slack).then(|| edits(word, &other))?;
    (distance <= slack).then_some(distance)
}

fn letters(word: &str) -> Vec<char> {
    word.to_lowercase().chars().collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substituted = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substituted.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &str, b: &str) -> usize {
        edits(&letters(a), &letters(b))
    }

    #[test]
    fn each_kind_of_slip_costs_one() {
        assert_eq!(distance("photo", "photo"), 0);
        assert_eq!(distance("phto", "photo"), 1);
        assert_eq!(distance("photos", "photo"), 1);
        assert_eq!(distance("phoro", "photo"), 1);
        assert_eq!(distance("pohto", "photo"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let known = ["cora", "photo", "computers", "cs", "physics"];
        assert_eq!(nearest("Phtoo", known), Some("photo"));
        assert_eq!(nearest("computrs", known), Some("computers"));
        assert_eq!(nearest("physic", known), Some("physics"));
        assert_eq!(nearest("citeseer", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
