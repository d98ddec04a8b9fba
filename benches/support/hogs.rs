//! Hogs: threads that keep every CPU busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that do nothing but calculate, until this is dropped.
pub struct Hogs {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    /// One on each CPU.
    pub fn start() -> Hogs {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Hogs::on((0..cpus).map(Some))
    }

    /// So many, where the kernel likes.
    pub fn anywhere(count: usize) -> Hogs {
        Hogs::on((0..count).map(|_| None))
    }

    fn on(cpus: impl Iterator<Item = Option<usize>>) -> Hogs {
        let is_over = Arc::new(AtomicBool::new(false));
        let hog = |cpu: Option<usize>| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                if let Some(cpu) = cpu {
                    let _ = wire::stay_on(&[cpu]);
                }
                let mut sum = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    for number in 0..10_000_u64 {
                        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
                    }
                }
            })
        };
        let threads = cpus.map(hog).collect();
        Hogs { is_over, threads }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
