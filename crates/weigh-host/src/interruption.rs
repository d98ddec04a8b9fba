//! Ctrl-C, SIGTERM and SIGHUP: they end what is done in good order, wherever that is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static HAS_COME: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static BEFORE_THE_END: OnceLock<fn()> = OnceLock::new();

/// From now on these signals end nothing by themselves, but set what is given back.
pub fn listen_for_signals() -> Result<Arc<AtomicBool>, String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let interrupted = HAS_COME.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(interrupted))
            .map_err(|error| format!("cannot listen for signals: {error}"))?;
    }
    Ok(Arc::clone(interrupted))
}

/// Returns true after a signal has come, for long work that has no flag of its own.
pub fn has_come() -> bool {
    HAS_COME.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Has [`end_by_signal`] call this before, as for a terminal whose cursor is hidden. The first call counts.
pub fn before_the_end(act: fn()) {
    BEFORE_THE_END.get_or_init(|| act);
}

/// Ends this process as SIGINT ends one that does not listen for it, after a signal has come while there is
/// nothing to put back.
pub fn end_by_signal() -> ! {
    if let Some(act) = BEFORE_THE_END.get() {
        act();
    }
    let sigint = signal_hook::consts::SIGINT;
    // It returns only where the kernel refuses to send the signal.
    let _ = signal_hook::low_level::emulate_default_handler(sigint);
    std::process::exit(128 + sigint)
}
