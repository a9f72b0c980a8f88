//! [`Pool`]: threads that wait close by for the next region of parallel work.
//!
//! A step of training is some hundred short regions, one after the other. Threads that sleep between
//! them wake too late for the next: waking takes longer than many a region. These look for work for
//! a moment before they sleep, and the caller never waits for one that has not woken.
//!
//! Everyone begins with a stretch of neighbouring tasks of their own, in order, and when that is
//! done takes single ones from the far end of another's.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Looks at the gate without giving the core away, and after that with.
const SPINS: u32 = 64;

/// Looks at the gate before a thread goes to sleep: well below a millisecond.
const LOOKS: u32 = 2000;

/// The caller's thread and others, which end with the pool.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// A task, called with the number of each piece of work. It outlives the region it is for.
type Task = *const (dyn Fn(usize) + Sync);

struct Shared {
    gate: Gate,
    /// A region is under way: another caller, or a task that opens one, goes on alone.
    busy: AtomicBool,
    /// Written by the caller while the gate is shut and nobody is inside, read by those inside.
    task: UnsafeCell<Option<Task>>,
    /// One a thread, the caller's first.
    stretches: Box<[Stretch]>,
    /// What the first task to panic said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    alarm: Condvar,
}

// SAFETY: the task is the only part that is not shared safely by itself; who may touch it when is
// said at its field, and the gate sees to it. The task itself may be called from any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// Who is inside the region. One word: the region's number, whether the gate is open, the number of
/// workers inside.
struct Gate(AtomicU64);

const OPEN: u64 = 1 << 31;

impl Gate {
    /// Opens the gate for the next region.
    fn open(&self) {
        let before = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(before & u64::from(u32::MAX), 0, "nobody inside");
        self.0.store(((before >> 32) + 1) << 32 | OPEN, Ordering::SeqCst);
    }

    /// Whether a worker that was last in region `seen` finds the gate open for another.
    fn is_open_after(&self, seen: u64) -> bool {
        let now = self.0.load(Ordering::SeqCst);
        now & OPEN != 0 && now >> 32 != seen
    }

    /// Goes in, if the gate is open for a region other than `seen`; returns the region's number.
    fn enter(&self, seen: u64) -> Option<u64> {
        let mut now = self.0.load(Ordering::Relaxed);
        while now & OPEN != 0 && now >> 32 != seen {
            match self.0.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(now >> 32),
                Err(other) => now = other,
            }
        }
        None
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Lets nobody in any more.
    fn shut(&self) {
        self.0.fetch_and(!OPEN, Ordering::AcqRel);
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) & u64::from(u32::MAX) == 0
    }
}

/// Tasks `from..to` that nobody has taken. A line of memory of its own.
#[repr(align(128))]
struct Stretch(AtomicU64);

impl Stretch {
    fn set(&self, from: u64, to: u64) {
        self.0.store(from << 32 | to, Ordering::Relaxed);
    }

    fn take(&self, step: impl Fn(u64, u64) -> (u64, u64, u64)) -> Option<usize> {
        let take = |now: u64| {
            let (from, to) = (now >> 32, now & u64::from(u32::MAX));
            (from < to).then(|| step(from, to))
        };
        let next = |now| take(now).map(|(from, to, _)| from << 32 | to);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        take(taken).map(|(_, _, task)| task as usize)
    }

    fn first(&self) -> Option<usize> {
        self.take(|from, to| (from + 1, to, from))
    }

    fn last(&self) -> Option<usize> {
        self.take(|from, to| (from, to - 1, to - 1))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at a condition for a moment, at first without giving the core away. Returns whether it came
/// to hold.
fn look_for(condition: impl Fn() -> bool) -> bool {
    (0..LOOKS).any(|look| {
        if look < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
        condition()
    })
}

impl Shared {
    /// Runs tasks until all are taken, beginning with those of thread `own`.
    fn work(&self, own: usize) {
        // SAFETY: the caller of this function is inside the region, so the task was written before
        // and lives until all have left.
        let Some(task) = (unsafe { *self.task.get() }) else { return };
        // SAFETY: as above.
        let task = unsafe { &*task };
        let others = (1..self.stretches.len()).map(|k| (own + k) % self.stretches.len());
        let work = AssertUnwindSafe(|| {
            while let Some(index) = self.stretches[own].first() {
                task(index);
            }
            for other in others {
                while let Some(index) = self.stretches[other].last() {
                    task(index);
                }
            }
        });
        if let Err(panic) = catch_unwind(work) {
            self.stretches.iter().for_each(|stretch| stretch.set(0, 0));
            let mut first = lock(&self.panic);
            if first.is_none() {
                *first = Some(panic);
            } else {
                // What a payload does when it is dropped must not unwind through the region.
                std::mem::forget(panic);
            }
        }
    }

    fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _awake = lock(&self.bed);
            self.alarm.notify_all();
        }
    }

    /// Sleeps until the gate is open for a region other than `seen`.
    fn sleep(&self, seen: u64) {
        let mut bed = lock(&self.bed);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !self.gate.is_open_after(seen) {
            bed = self.alarm.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// What a worker does until it finds a region without a task.
    fn serve(&self, own: usize) {
        let mut seen = 0;
        loop {
            if !self.gate.is_open_after(seen) && !look_for(|| self.gate.is_open_after(seen)) {
                self.sleep(seen);
            }
            let Some(region) = self.gate.enter(seen) else { continue };
            seen = region;
            // SAFETY: this worker is inside the region.
            let is_last = unsafe { (*self.task.get()).is_none() };
            self.work(own);
            self.gate.leave();
            if is_last {
                return;
            }
        }
    }
}

impl Pool {
    /// A pool of `count` threads, the caller's among them.
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.max(1);
        let shared = Arc::new(Shared {
            gate: Gate(AtomicU64::new(0)),
            busy: AtomicBool::new(false),
            task: UnsafeCell::new(None),
            stretches: (0..count).map(|_| Stretch(AtomicU64::new(0))).collect(),
            panic: Mutex::new(None),
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(()),
            alarm: Condvar::new(),
        });
        // The pool is there before its threads: if one cannot be started, the others end with it.
        let mut pool = Self { shared, workers: Vec::new() };
        for own in 1..count {
            let shared = pool.shared.clone();
            let worker = std::thread::Builder::new()
                .name(format!("blnn-{own}"))
                .spawn(move || shared.serve(own))
                .expect("the operating system could not start worker threads");
            pool.workers.push(worker);
        }
        pool
    }

    /// Number of threads.
    pub(crate) fn count(&self) -> usize {
        self.shared.stretches.len()
    }

    /// Calls `task(k)` for every `k` in `0..tasks`, in any order, on any thread, and returns when all
    /// are done. While another region is under way the caller goes through them alone.
    ///
    /// # Panics
    /// If a task does; some tasks may then not have been called.
    pub(crate) fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        let shared = &*self.shared;
        let is_small = tasks <= 1 || self.count() == 1 || u32::try_from(tasks).is_err();
        if is_small || shared.busy.swap(true, Ordering::Acquire) {
            return (0..tasks).for_each(task);
        }
        for (t, stretch) in shared.stretches.iter().enumerate() {
            let bound = |t: usize| t as u64 * tasks as u64 / shared.stretches.len() as u64;
            stretch.set(bound(t), bound(t + 1));
        }
        self.region(&task);
        let panic = lock(&shared.panic).take();
        shared.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Opens a region for a task, takes part, and returns when nobody is inside any more.
    fn region(&self, task: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes; below, this function does not return, and does not
        // unwind, before all who read the task have left.
        let task = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        // SAFETY: the gate is shut and nobody is inside.
        unsafe { *shared.task.get() = Some(task) };
        shared.gate.open();
        shared.wake();
        shared.work(0);
        shared.gate.shut();
        // Those inside have their last task in hand.
        while !look_for(|| shared.gate.is_empty()) {}
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for stretch in &self.shared.stretches {
            stretch.set(0, 0);
        }
        // SAFETY: nobody else can open a region of a pool that is dropped: none is under way.
        unsafe { *self.shared.task.get() = None };
        self.shared.gate.open();
        self.shared.wake();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of tasks, and has no others.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pool: &Pool, tasks: usize) -> Vec<usize> {
        let hits: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        pool.run(tasks, |k| {
            hits[k].fetch_add(1, Ordering::Relaxed);
        });
        hits.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_task_runs_once_whatever_the_numbers() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 3, 7, 16, 1000] {
                assert_eq!(counts(&pool, tasks), vec![1; tasks], "{threads} threads");
            }
        }
    }

    #[test]
    fn many_regions_in_a_row_lose_nothing() {
        let pool = Pool::new(3);
        let total = AtomicUsize::new(0);
        for _ in 0..20_000 {
            pool.run(4, |k| {
                total.fetch_add(k, Ordering::Relaxed);
            });
        }
        assert_eq!(total.into_inner(), 20_000 * 6);
    }

    #[test]
    fn sleepers_wake_for_the_next_region() {
        let pool = Pool::new(2);
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            // Both must be inside at once, or none gets on.
            let barrier = std::sync::Barrier::new(2);
            pool.run(2, |_| {
                barrier.wait();
            });
        }
    }

    #[test]
    fn a_region_inside_a_region_runs_in_its_task() {
        let pool = Pool::new(2);
        let total = AtomicUsize::new(0);
        pool.run(5, |_| {
            pool.run(7, |k| {
                total.fetch_add(k, Ordering::Relaxed);
            });
        });
        assert_eq!(total.into_inner(), 5 * 21);
    }

    #[test]
    fn callers_on_several_threads_share_a_pool() {
        let pool = Pool::new(2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| assert_eq!(counts(&pool, 9), [1; 9])));
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(2);
        for bad in [0, 15] {
            let region = AssertUnwindSafe(|| pool.run(16, |k| assert_ne!(k, bad, "task {bad}")));
            let panic = catch_unwind(region).expect_err("a task panics");
            let message = panic.downcast_ref::<String>().expect("a message");
            assert!(message.contains(&format!("task {bad}")), "{message}");
            assert_eq!(counts(&pool, 16), [1; 16]);
        }
    }

    #[test]
    fn callers_that_share_a_pool_get_their_own_panics() {
        let pool = Pool::new(2);
        std::thread::scope(|scope| {
            for caller in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let region =
                            || pool.run(8, |k| assert!(caller > 1 || k != 5, "of {caller}"));
                        let outcome = catch_unwind(AssertUnwindSafe(region));
                        let message =
                            outcome.err().map(|panic| *panic.downcast::<String>().unwrap());
                        assert_eq!(message, (caller < 2).then(|| format!("of {caller}")));
                    }
                });
            }
        });
    }

    #[test]
    fn a_pool_that_was_never_used_ends() {
        drop(Pool::new(4));
    }
}
