//! What people read on stderr, and how things are written for them.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

pub(crate) use blnn::text::grouped;

/// The exit code of work that was interrupted: 128 plus the number of SIGINT, as shells expect.
pub(crate) const INTERRUPTED: u8 = 130;

/// Writes one line to stderr. A closed stderr must not end a training run, so failures are
/// ignored.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints an error with its causes, leaving out causes that the line before already tells.
pub(crate) fn report(error: &anyhow::Error) {
    let mut told = error.to_string();
    note(format_args!("error: {told}"));
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !told.contains(&cause) {
            note(format_args!("  because: {cause}"));
            told = cause;
        }
    }
}

/// A duration at the precision a person wants: "0.124 s", "58.2 s", "1.7 min", "3.1 h".
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{s:.3} s"),
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6000.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A path as one word of a shell command.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let shown = [0, 12, 999, 1000, 34_493, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "12", "999", "1,000", "34,493", "1,234,567"]);
    }

    #[test]
    fn durations_grow_their_unit() {
        let shown = [0.0123, 58.2, 720.0, 11_160.0].map(duration);
        assert_eq!(shown, ["0.012 s", "58.2 s", "12.0 min", "3.1 h"]);
    }

    #[test]
    fn odd_paths_are_quoted() {
        assert_eq!(shell_word(Path::new("runs/a-1")), "runs/a-1");
        assert_eq!(shell_word(Path::new("my runs/it's")), r"'my runs/it'\''s'");
    }
}
