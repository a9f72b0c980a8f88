//! Decoders of other people's that panic over some damaged files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; `None` if it panicked.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> T) -> Option<T> {
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(decode)).ok();
    GUARDED.set(before);
    done
}

/// Whether a panic of this thread at this moment is going to be an error of the library. The panic
/// hook of a program need not speak of it then.
///
/// ```
/// assert!(!blnn::panic_becomes_error());
/// ```
pub fn panic_becomes_error() -> bool {
    GUARDED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_known_for_what_it_is_while_it_lasts() {
        assert_eq!(guarded(panic_becomes_error), Some(true));
        assert_eq!(guarded(|| guarded(|| ()).map(|()| panic_becomes_error())), Some(Some(true)));
        let damaged: &[u8] = &[];
        assert_eq!(guarded(|| damaged[0]), None);
        assert!(!panic_becomes_error());
    }
}
