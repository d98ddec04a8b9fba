//! A display that goes on while nothing happens, so that a long step does not look like a halt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a display may stand still.
pub const BEAT: Duration = Duration::from_secs(1);

/// Calls `beat` about once a second until the display is gone. If there can be no thread, it is shown with
/// each news alone.
pub fn start<S: Send + 'static>(shown: &Arc<Mutex<S>>, beat: fn(&mut S)) {
    let shown = Arc::downgrade(shown);
    let go_on = move || {
        loop {
            thread::sleep(BEAT);
            let Some(shown) = shown.upgrade() else { return };
            beat(&mut lock(&shown));
        }
    };
    drop(thread::Builder::new().spawn(go_on));
}

/// A thread that panicked while it wrote has left the display as it was.
pub fn lock<S>(shown: &Mutex<S>) -> MutexGuard<'_, S> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
