//! Hogs: threads that keep every CPU busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A thread on each CPU that does nothing but calculate, until this is dropped.
pub struct Hogs {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    pub fn start() -> Hogs {
        let is_over = Arc::new(AtomicBool::new(false));
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let hog = |cpu: usize| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let _ = wire::stay_on(&[cpu]);
                let mut sum = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    for number in 0..10_000_u64 {
                        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
                    }
                }
            })
        };
        let threads = (0..cpus).map(hog).collect();
        Hogs { is_over, threads }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
