//! A training step allocates nothing once its buffers are there. It stands in this crate because
//! a counting allocator is `unsafe` code.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use blnn::{Config, Trainer, data};
use blnn_kernels::Threads;

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all requests go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn steps_allocate_nothing() {
    let graph = data::load("cora", &[]).unwrap();
    for (method, objective, precision) in [
        ("bgrl", "paper", "f32"),
        ("blnn", "paper", "f32"),
        ("blnn", "one-direction", "f32"),
        ("blnn", "published-code", "f32"),
        ("bgrl-clean", "paper", "f32"),
        ("bgrl", "paper", "bf16"),
        ("blnn", "paper", "bf16"),
    ] {
        let mut config = Config::new();
        for (key, value) in [("method", method), ("objective", objective), ("precision", precision)]
        {
            config.assign(&format!("{key}={value}")).unwrap();
        }
        config.assign("hidden_width=40").unwrap();
        config.assign("embedding_width=20").unwrap();
        config.assign("predictor_width=30").unwrap();
        let plan = config.resolve("cora").unwrap();
        let mut trainer = Trainer::new(&graph, &plan, &Threads::new(2)).unwrap();
        (0..3).for_each(|_| _ = trainer.step());
        let before = BYTES.load(Ordering::Relaxed);
        (0..20).for_each(|_| _ = trainer.step());
        let bytes = BYTES.load(Ordering::Relaxed) - before;
        assert_eq!(bytes, 0, "{method} {objective} {precision}: bytes in 20 steps");
    }
}
