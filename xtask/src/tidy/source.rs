//! Rust source without its comments, strings and tests, so that rules look at code only.

/// The lines of `text` with comments and the contents of string literals left out.
pub(super) fn code_lines(text: &str) -> Vec<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped_length(rest, out.ends_with(is_word));
        let length = if skipped == 0 {
            out.push(first);
            first.len_utf8()
        } else {
            out.extend(rest[..skipped].chars().filter(|&c| c == '\n'));
            skipped
        };
        rest = &rest[length..];
    }
    out.split('\n').map(str::to_owned).collect()
}

/// How many bytes of a comment or literal `rest` starts with; 0 if it starts with code.
fn skipped_length(rest: &str, after_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    if !after_word && let Some(length) = raw_string_length(rest) {
        return length;
    }
    match rest.as_bytes()[0] {
        b'"' => string_length(rest),
        b'\'' => char_length(rest),
        _ => 0,
    }
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = &rest.as_bytes()[at..];
        if step.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if step.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inside = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let close = inside.find(&end)?;
    Some(rest.len() - inside.len() + close + end.len())
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal; 0 for a lifetime, which has no closing quote.
fn char_length(rest: &str) -> usize {
    let mut inside = rest[1..].chars();
    match inside.next() {
        Some('\\') => rest.get(3..).and_then(|tail| tail.find('\'')).map_or(0, |close| close + 4),
        Some(c) if inside.next() == Some('\'') => c.len_utf8() + 2,
        _ => 0,
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The part of a file before its `mod tests`, which may use what it likes.
pub(super) fn without_tests(text: &str) -> &str {
    let is_test_module = |(at, _): &(usize, &str)| {
        let mut lines = text[at + 1..].lines();
        let condition = lines.next().unwrap_or_default();
        condition.contains("test") && lines.next().is_some_and(|line| line.starts_with("mod "))
    };
    let found = text.match_indices("\n#[cfg(").find(is_test_module);
    found.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_go_and_lines_stay() {
        let text = "let a = \"x // \\\" y\"; // tail\n/* one /* two */\n */ b('\"', '\\'', 'c)\n\
                    r#\"raw \" text\"#; br\"bytes\"; for_r\"z\"";
        assert_eq!(code_lines(text), ["let a = ; ", "", " b(, , 'c)", "; ; for_r"]);
    }

    #[test]
    fn lifetimes_are_code() {
        assert_eq!(code_lines("fn f<'a>(x: &'a str)"), ["fn f<'a>(x: &'a str)"]);
    }

    #[test]
    fn tests_are_cut_off() {
        assert_eq!(without_tests("code\n#[cfg(test)]\nmod tests {}"), "code");
        assert_eq!(without_tests("a\n#[cfg(all(test, unix))]\nmod tests {}"), "a");
        assert_eq!(without_tests("#[cfg(test)]\nfn f() {}"), "#[cfg(test)]\nfn f() {}");
    }
}
