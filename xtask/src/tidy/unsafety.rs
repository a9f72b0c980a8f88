//! `unsafe` stands only in the kernels' crate, and each one says why it is sound.

use super::File;
use super::source::{code_lines, is_word};

const KERNELS: &str = "crates/blnn-kernels/";
const KEYWORD: &str = "unsafe";

/// A statement may start some lines above its block, below the comment.
const COMMENT_WITHIN_LINES: usize = 6;

/// One complaint for each `unsafe` in the wrong place or without its reason.
pub(super) fn check(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| file.is_a("rs")).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.split('\n').collect();
    let mut complaints = Vec::new();
    for (number, code) in code_lines(&file.text).iter().enumerate() {
        let Some(after) = after_keyword(code) else {
            continue;
        };
        let place = format!("{}:{}", file.path, number + 1);
        if !file.path.starts_with(KERNELS) {
            complaints.push(format!("{place}: `{KEYWORD}` belongs in {KERNELS} only"));
        } else if after.starts_with("fn") {
            if is_public(code) && !doc_above(&lines, number).any(|l| l.contains("# Safety")) {
                complaints.push(format!("{place}: its docs need a `# Safety` section"));
            }
        } else if !has_reason(&lines, number) {
            complaints.push(format!("{place}: say why it is sound in a `// SAFETY:` comment"));
        }
    }
    complaints
}

/// What follows the keyword on a line of code, if the line has it as a word of its own.
fn after_keyword(code: &str) -> Option<&str> {
    let (at, _) = code.match_indices(KEYWORD).find(|(at, _)| {
        let before = code[..*at].chars().next_back();
        let after = code[at + KEYWORD.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })?;
    Some(code[at + KEYWORD.len()..].trim_start())
}

/// Inside the crate, a kernel's contract is that of the vector type it is generic over, and each
/// operation in it stands in a block with a reason.
fn is_public(code: &str) -> bool {
    code.trim_start().starts_with("pub ")
}

/// The comment and attribute lines straight above line `number`.
fn doc_above<'a>(lines: &'a [&str], number: usize) -> impl Iterator<Item = &'a str> {
    let is_doc = |line: &&str| line.starts_with("//") || line.starts_with('#');
    let above = lines[..number].iter().rev().map(|line| line.trim());
    above.take_while(is_doc)
}

fn has_reason(lines: &[&str], number: usize) -> bool {
    let first = number.saturating_sub(COMMENT_WITHIN_LINES);
    lines[first..=number].iter().any(|line| line.contains("// SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check(&[file]).len()
    }

    #[test]
    fn other_crates_have_none() {
        let block = "// SAFETY: checked above.\nunsafe { read(p) }";
        assert_eq!(complaints("crates/blnn/src/graph.rs", block), 1);
        assert_eq!(complaints("crates/blnn-kernels/src/par.rs", block), 0);
        assert_eq!(complaints("crates/blnn/src/lib.rs", "#![forbid(unsafe_code)] // unsafe"), 0);
    }

    #[test]
    fn the_kernels_give_reasons() {
        let path = "crates/blnn-kernels/src/simd/x86.rs";
        assert_eq!(complaints(path, "let x = unsafe { read(p) };"), 1);
        assert_eq!(complaints(path, "/// Adds.\npub unsafe fn add() {}"), 1);
        assert_eq!(complaints(path, "/// Adds.\nunsafe fn add() {}"), 0);
        let documented = "/// # Safety\n/// Needs AVX2.\n#[target_feature(enable = \"avx2\")]\n\
                          pub unsafe fn add() {}";
        assert_eq!(complaints(path, documented), 0);
        assert_eq!(complaints(path, "type Add = unsafe fn(&[f32]);"), 0);
        assert_eq!(complaints(path, "unsafe impl Send for Row {}"), 1);
    }
}
