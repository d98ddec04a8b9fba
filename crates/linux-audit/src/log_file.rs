//! The audit log as auditd writes it by default: each record at once, flushed by a thread of its
//! own after every 50 (`flush = INCREMENTAL_ASYNC`, `freq = 50`), a new file at 8 MiB
//! (`max_log_file = 8`). Two files are kept, because only their growth is of interest.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

const FLUSH_EVERY_RECORDS: u32 = 50;
const MAX_FILE_BYTES: u64 = 8 << 20;

#[derive(Default)]
struct FlushState {
    wanted: Option<Arc<File>>,
    is_flushing: bool,
}

type SharedFlushState = Arc<(Mutex<FlushState>, Condvar)>;

/// An open, rotating log.
pub struct LogFile {
    path: PathBuf,
    file: Arc<File>,
    file_bytes: u64,
    unflushed_records: u32,
    flush: SharedFlushState,
}

impl LogFile {
    /// Creates the file and starts its flushing thread, which ends with the process.
    ///
    /// # Errors
    /// Where the file cannot be created.
    pub fn create(path: &Path) -> io::Result<LogFile> {
        let flush = SharedFlushState::default();
        let shared = Arc::clone(&flush);
        std::thread::Builder::new().spawn(move || flush_for_ever(&shared))?;
        Ok(LogFile {
            path: path.to_owned(),
            file: Arc::new(File::create(path)?),
            file_bytes: 0,
            unflushed_records: 0,
            flush,
        })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// As `write(2)`: a full disk, above all.
    pub fn write(&mut self, line: &[u8]) -> io::Result<()> {
        (&*self.file).write_all(line)?;
        self.file_bytes += line.len() as u64;
        self.unflushed_records += 1;
        if self.unflushed_records >= FLUSH_EVERY_RECORDS {
            self.unflushed_records = 0;
            let (state, changed) = &*self.flush;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.wanted = Some(Arc::clone(&self.file));
            changed.notify_all();
        }
        if self.file_bytes >= MAX_FILE_BYTES {
            fs::rename(&self.path, self.path.with_extension("1"))?;
            self.file = Arc::new(File::create(&self.path)?);
            self.file_bytes = 0;
        }
        Ok(())
    }

    /// Waits for the flushing thread, so that its work does not reach into the next sample.
    pub fn wait_until_flushed(&self) {
        let (state, changed) = &*self.flush;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.wanted.is_some() || state.is_flushing {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn flush_for_ever(flush: &SharedFlushState) {
    let (state, changed) = &**flush;
    let mut guard = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match guard.wanted.take() {
            None => guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(file) => {
                guard.is_flushing = true;
                drop(guard);
                // auditd carries on after a failed flush as well; a full disk shows in `write`.
                let _ = file.sync_data();
                guard = state.lock().unwrap_or_else(PoisonError::into_inner);
                guard.is_flushing = false;
                changed.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fiftieth_record_is_to_be_flushed() {
        let file = tempfile::tempfile().unwrap();
        let flush = SharedFlushState::default();
        let is_wanted = || flush.0.lock().unwrap().wanted.take().is_some();
        // No thread takes what is to be flushed.
        let mut log = LogFile {
            path: PathBuf::new(),
            file: Arc::new(file),
            file_bytes: 0,
            unflushed_records: 0,
            flush: Arc::clone(&flush),
        };
        let wanted: Vec<u32> = (1..=150)
            .filter(|_| {
                log.write(b"record\n").unwrap();
                is_wanted()
            })
            .collect();
        assert_eq!(wanted, [50, 100, 150]);
    }

    #[test]
    fn nothing_is_flushed_any_more_after_waiting_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = LogFile::create(&directory.path().join("audit.log")).unwrap();
        for _ in 0..5 {
            (0..50).for_each(|_| log.write(b"record\n").unwrap());
            log.wait_until_flushed();
            let state = log.flush.0.lock().unwrap();
            assert!(state.wanted.is_none() && !state.is_flushing);
        }
    }

    #[test]
    fn a_full_file_is_rotated_and_nothing_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut log = LogFile::create(&path).unwrap();
        let line = vec![b'x'; 1 << 20];
        for _ in 0..9 {
            log.write(&line).unwrap();
        }
        log.wait_until_flushed();
        assert_eq!(fs::metadata(path.with_extension("1")).unwrap().len(), 8 << 20);
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    }
}
