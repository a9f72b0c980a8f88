//! Stand-in.
pub(crate) fn did_you_mean<const N: usize>(word: &str, all: [&str; N]) -> String {
    let d = |k: &str| {
        let (a, b): (Vec<char>, Vec<char>) = (word.chars().collect(), k.chars().collect());
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for i in 0..a.len() {
            let mut diag = row[0];
            row[0] = i + 1;
            for j in 0..b.len() {
                let next = (diag + usize::from(a[i] != b[j]))
                    .min(row[j] + 1)
                    .min(row[j + 1] + 1);
                diag = row[j + 1];
                row[j + 1] = next;
            }
        }
        row[b.len()]
    };
    let best = all.iter().min_by_key(|k| d(k)).unwrap_or(&"");
    format!("; did you mean `{best}`?")
}
