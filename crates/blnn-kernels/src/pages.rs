//! Large pages for large matrices.
//!
//! A gather jumps to a random row with every load. In pages of 4 KiB a panel of twenty thousand
//! rows spans hundreds of them, more than the CPU's first table of addresses holds; in pages of
//! 2 MiB it spans two. Linux hands them out on request, so we ask.

/// Vectors below this size gain nothing.
#[cfg(target_os = "linux")]
const WORTHWHILE: usize = 1 << 20;

/// A vector with room for `len` items, in large pages where the system has them.
pub(crate) fn with_capacity<T>(len: usize) -> Vec<T> {
    let vector = Vec::with_capacity(len);
    #[cfg(target_os = "linux")]
    ask_for_large_pages(&vector);
    vector
}

/// Must come before the first write: a page that is in use keeps its size.
#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(vector: &Vec<T>) {
    const PAGE: usize = 4096;
    let start = vector.as_ptr() as usize;
    let end = start + vector.capacity() * size_of::<T>();
    let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    if end - start < WORTHWHILE || first >= last {
        return;
    }
    // SAFETY: the range lies inside the vector's own allocation, and this advice changes neither
    // contents nor access. A refusal is harmless: the pages stay small.
    unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_any_size_hold_what_is_written() {
        for len in [0, 1, 1000, 3_000_000] {
            let mut vector: Vec<u32> = with_capacity(len);
            assert!(vector.capacity() >= len);
            vector.extend(0..len as u32);
            assert!(vector.iter().enumerate().all(|(i, &v)| v == i as u32));
        }
    }
}
